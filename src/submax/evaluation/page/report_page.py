"""Writes the report of a comparison: one page of HTML that needs nothing else."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from submax._version import __version__
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.core.serialization import atomic_write
from submax.core.summary import number, percentage
from submax.evaluation.overview.overlap import Overlap
from submax.evaluation.overview.overview import Overview
from submax.evaluation.page.axis_scale import AxisScale
from submax.evaluation.page.warned import warnings_of
from submax.evaluation.report.estimate import DECISION, LOGGING_POLICY, Estimate
from submax.evaluation.report.recommendation import rule_of

if TYPE_CHECKING:
    from submax.evaluation.report.comparisons.comparison import Comparison

TEMPLATES = "submax.evaluation.page"
CALIBRATION_ERRORS = 2.0
"""Standard errors to each side of a ratio that are drawn: about 95 %."""


def check_report(path: Path) -> None:
    """Refuse a path to which no report can be written, before any work is done."""
    require_extra("report", "a report", "jinja2")
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise InputError(
            f"the report is {str(path)!r}; the path of a file in a folder that exists is allowed: "
            "give a name such as report.html",
            parameter="path",
        )


def write_report(path: Path, found: "Comparison", command: str | None = None) -> None:
    """Write the page; ``command`` is the command line by which it is made again."""
    check_report(path)
    overview = found.overview
    if overview is None:
        raise InputError(
            "this comparison has no overview of its log; one that compare() returned is allowed: "
            "compare the policies again"
        )
    page = rendered(found, overview, command).encode()
    with atomic_write(path) as file:
        file.write(page)


def rendered(found: "Comparison", overview: Overview, command: str | None) -> str:
    """Return the page as HTML; every name and text of the log is shown as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(TEMPLATES, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, percentage=percentage)
    style = files(TEMPLATES).joinpath("templates", "report.css").read_text(encoding="utf-8")
    # The policy of the page allows this style sheet alone: no script, no image, no address.
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    rule = rule_of(found.estimators()[1:])
    return environment.get_template("report.html").render(
        found=found,
        by_decision=found.unit == DECISION,
        units=found.units,
        overview=overview,
        command=command,
        version=__version__,
        style=style,
        digest=digest,
        logging=found.estimates[0],
        scale=AxisScale.of(_numbers(found.estimates)),
        best=_best(found.recommended()),
        policies=[name for name in found.policies() if name != LOGGING_POLICY],
        warnings=warnings_of(found.estimates),
        rule=f"{rule[0].upper()}{rule[1:]}.",
        weights=Overlap.labels(),
        calibrated=_calibrated(overview),
        slices=_slices(overview),
    )


def _numbers(estimates: Sequence[Estimate]) -> list[float]:
    return [number for one in estimates for number in (one.value, *one.interval)]


def _best(recommended: Sequence[Estimate]) -> Estimate | None:
    """Return the recommended estimate with the highest value, without the logging policy."""
    known = [one for one in recommended[1:] if one.value == one.value]
    return max(known, key=lambda one: one.value, default=None)


def _calibrated(overview: Overview) -> dict[str, Any]:
    """Return the choices whose propensities were checked, and the scale of their ratios."""
    choices = [one for one in overview.choices if one.calibration is not None]
    ends = [1.0]
    for one in choices:
        if one.calibration is not None:
            half = CALIBRATION_ERRORS * one.calibration.error
            ends += [one.calibration.ratio - half, one.calibration.ratio + half]
    return {"choices": choices, "scale": AxisScale.of(ends), "errors": CALIBRATION_ERRORS}


def _slices(overview: Overview) -> list[dict[str, Any]]:
    """Return the estimates of slices by column, then by value, with the scale of each column."""
    found = []
    for column in dict.fromkeys(one.column for one in overview.slices):
        mine = [one for one in overview.slices if one.column == column]
        values = list(dict.fromkeys(one.value for one in mine))
        rows = [(value, [one.estimate for one in mine if one.value == value]) for value in values]
        scale = AxisScale.of(_numbers([one.estimate for one in mine]))
        found.append({"column": column, "rows": rows, "scale": scale})
    return found
