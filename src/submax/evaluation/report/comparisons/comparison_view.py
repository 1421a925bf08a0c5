"""The text and HTML form of a comparison of policies."""

from collections.abc import Sequence

from submax.core.summary import Summary, counted, number
from submax.evaluation.report.estimate import Estimate

MOST_NOTES = 3
"""Notes that are part of the text; the others are in the ``notes`` of the comparison."""


def comparison_summary(
    estimates: Sequence[Estimate], notes: Sequence[str], level: float, unit: str
) -> Summary:
    """Return a table with the logging policy first, then the other policies by their value."""
    policies = list(dict.fromkeys(one.policy for one in estimates))
    chosen = [one for one in estimates if one.recommended]
    chosen = chosen[:1] + sorted(chosen[1:], key=lambda one: -_sortable(one.value))
    sentences = [
        f"Comparison of {counted(len(policies) - 1, 'policy').replace('policys', 'policies')} "
        f"with the logging policy: reward per {unit}, {100 * level:g} % intervals",
        *notes[:MOST_NOTES],
    ]
    if len(chosen) < len(estimates):
        sentences.append(
            f"the recommended estimate of each policy; all {len(estimates)} estimates: see rows()"
        )
    if any(one.cautions for one in chosen):
        sentences.append("! marks a value with warnings: see rows() for the sentences")
    columns = ["policy", "estimator", "value", "low", "high", "!"]
    return Summary(sentences, columns, [_row(one) for one in chosen], texts=2)


def _row(one: Estimate) -> list[str]:
    interval = one.interval
    numbers = [number(value) for value in (one.value, interval.low, interval.high)]
    return [one.policy, one.estimator, *numbers, "!" if one.cautions else ""]


def _sortable(value: float) -> float:
    return value if value == value else float("-inf")
