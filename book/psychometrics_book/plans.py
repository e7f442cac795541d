"""Show a study's plan, which was committed before the results of the study."""

from __future__ import annotations

import yaml

from psychometrics.exceptions import DataError
from psychometrics.paths import data_dir

from .templating import fill_template


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
    display(HTML(fill_template("plan.html.j2", commit=commit, fields=fields)))
