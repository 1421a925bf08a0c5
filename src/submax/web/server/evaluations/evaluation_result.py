"""What an evaluation has found, as plain data with sentences."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from submax.web.dashboard.formats import interval

if TYPE_CHECKING:
    # The server itself evaluates nothing, and needs none of these modules.
    from submax.evaluation.comparison import Comparison
    from submax.evaluation.estimates import Difference, Estimate

LOGGED = "the policies that made the log"


class EstimateRow(msgspec.Struct, frozen=True):
    """What a policy would have earned per decision, by one estimator, with its interval.

    ``effective`` is how many of the ``rows`` count, given how unequal their weights are.
    ``warnings`` are reasons not to trust the value or its interval.
    """

    policy: str
    estimator: str
    recommended: bool
    value: float | None
    low: float | None
    high: float | None
    effective: float | None
    rows: int
    warnings: list[str]


class DifferenceRow(msgspec.Struct, frozen=True):
    """How much more a policy would have earned per decision than the log did.

    ``rows_needed`` is how many rows would show a difference of this size in 8 of 10 logs.
    """

    policy: str
    estimator: str
    value: float | None
    low: float | None
    high: float | None
    rows_needed: float | None


class EvaluationResult(msgspec.Struct, frozen=True):
    """The estimates of all policies; the first one is that of the log itself.

    ``sentences`` say what they mean, and ``notes`` what was done with the log.
    """

    level: float
    sentences: list[str]
    estimates: list[EstimateRow]
    differences: list[DifferenceRow]
    notes: list[str]


def evaluation_result(found: "Comparison") -> EvaluationResult:
    """Make plain data of a comparison."""
    recommended = [one for one in found.differences if one.recommended]
    return EvaluationResult(
        found.level,
        list(_sentences(found, recommended)),
        [_row(one) for one in found.estimates],
        [_difference(one) for one in recommended],
        list(dict.fromkeys(found.notes)),
    )


def _sentences(found: "Comparison", recommended: "list[Difference]") -> Iterator[str]:
    percent = f"({100 * found.level:g} % interval)"
    cautions = {one.policy: one.cautions for one in found.recommended()}
    for one in recommended:
        yield _verdict(one, percent)
        if cautions.get(one.policy):
            yield f"The estimate of {one.policy} has warnings, which are below."


def _verdict(one: "Difference", percent: str) -> str:
    low, high = one.interval.low, one.interval.high
    if not math.isfinite(high - low):
        return f"What {one.policy} would have earned cannot be said from this log."
    if low > 0:
        return (
            f"{one.policy} would have earned {interval(low, high)} more per decision "
            f"than {LOGGED} {percent}."
        )
    if high < 0:
        return (
            f"{one.policy} would have earned {interval(-high, -low)} less per decision "
            f"than {LOGGED} {percent}."
        )
    said = (
        f"Whether {one.policy} would have earned more than {LOGGED} cannot be said: the difference "
        f"per decision is {interval(low, high)} {percent}."
    )
    needed = one.rows_needed()
    if math.isfinite(needed):
        said += f" If it is as estimated, about {needed:,.2g} evaluated decisions would show it."
    return said.replace("e+0", "e")


def _row(one: "Estimate") -> EstimateRow:
    about = one.diagnostics
    return EstimateRow(
        one.policy,
        one.estimator,
        one.recommended,
        _finite(one.value),
        _finite(one.interval.low),
        _finite(one.interval.high),
        _finite(about.effective),
        int(about.rows),
        list(one.cautions),
    )


def _difference(one: "Difference") -> DifferenceRow:
    return DifferenceRow(
        one.policy,
        one.estimator,
        _finite(one.value),
        _finite(one.interval.low),
        _finite(one.interval.high),
        _finite(one.rows_needed()),
    )


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
