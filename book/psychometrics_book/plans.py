"""Show a study's plan, which was committed before the results of the study."""

from __future__ import annotations

from html import escape

import yaml

from psychometrics.exceptions import DataError
from psychometrics.paths import data_dir


def plan(name: str) -> None:
    """Show a study's plan in a collapsed block, with the commit that added it.

    Parameters
    ----------
    name : str
        The name of a file in ``data/plans``, without its extension. Its fields are sentences, lists
        or mappings; ``committed`` is the commit, and ``deviations`` lists the decisions that were
        made after the results.

    Raises
    ------
    DataError
        The plan does not exist.

    Examples
    --------
    >>> plan("no-such-plan")
    Traceback (most recent call last):
        ...
    psychometrics.exceptions.DataError: data/plans has no no-such-plan.yml; ...
    """
    from IPython.display import HTML, display

    paths = {path.stem: path for path in (data_dir() / "plans").glob("*.yml")}

    if name not in paths:
        raise DataError(f"data/plans has no {name}.yml; correct the name.")
    fields = yaml.safe_load(paths[name].read_text(encoding="utf-8"))
    commit = fields.pop("committed", "a commit not yet named")
    later = fields.get("deviations")
    rows = "".join(
        f"<dt>{escape(k.replace('_', ' '))}</dt><dd>{_html_of(v)}</dd>" for k, v in fields.items()
    )
    about = f"The plan, committed before its results ({commit}); deviations: {len(later or [])}"
    display(HTML(f'<details class="plan"><summary>{about}</summary><dl>{rows}</dl></details>'))


def _html_of(value: object) -> str:
    """Return a field of a plan as HTML, in which mappings and lists become lists."""
    if isinstance(value, dict):
        value = [f"<i>{escape(str(k))}</i>: {_html_of(v)}" for k, v in value.items()]
    elif isinstance(value, list):
        value = [_html_of(v) for v in value]
    else:
        return escape(str(value))
    return "<ul>" + "".join(f"<li>{entry}</li>" for entry in value) + "</ul>" if value else "none"
