"""List what is installed, as a CycloneDX 1.6 bill of materials: ``python -m recipes.sbom``."""

from __future__ import annotations

import json
from importlib.metadata import Distribution, distributions

from .metadata import read


def bill_of_materials(about: dict) -> dict:
    """Return the bill: the project, and each distribution of this environment."""
    installed = {entry.name.lower(): entry for entry in distributions()}
    project = {"type": "application", "name": about["title"], "version": about["version"]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": project},
        "components": [_component(installed[name]) for name in sorted(installed)],
    }


def _component(distribution: Distribution) -> dict:
    name = distribution.name.lower().replace("_", "-")
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}@{distribution.version}",
        "purl": f"pkg:pypi/{name}@{distribution.version}",
        "name": distribution.name,
        "version": distribution.version,
    }


if __name__ == "__main__":
    print(json.dumps(bill_of_materials(read()), indent=1))
