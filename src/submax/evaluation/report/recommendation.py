"""Chooses the one estimate of each policy that a reader should look at first."""

from collections.abc import Sequence

from submax.evaluation.report.estimate import Estimate

SESSIONS = "per-decision"
"""The estimator for logs with sessions. All others, except `trajectory`, have a warning there: they
assume that a decision does not change what comes later in its session. So this one is recommended,
unless its weights, which are products over a session, are spread so widely that it has more
warnings than the others."""
ORDER = (
    "dr",
    "dr-shrinkage",
    "snips",
    "switch-dr",
    SESSIONS,
    "pseudo-inverse",
    "clipped",
    "ips",
    "replay",
    "mips",
)
"""Estimators in the order of preference. ``dr`` is first because it needs only the propensities or
the model of rewards to be right, and both reduce its error. Estimators with parameters of their
own come after those by name."""
RANKING_ORDER = ("cascade-dr", "rips", "sips", "pbm", "iips")
"""The same for estimators of rankings."""
MODEL_ONLY = "dm"
"""The estimator that is recommended only if there is no other, because nothing corrects the error
of its model."""


def rule_of(estimators: Sequence[str]) -> str:
    """Return the rule as a reader is told it, about the estimators that were used."""
    preferred = [name for name in (*ORDER, *RANKING_ORDER) if name in estimators]
    rule = "the recommended estimate of a policy is the one with the fewest warnings"
    if len(preferred) > 1:
        rule += f"; among equals the first of {', '.join(preferred)}"
    if SESSIONS in estimators:
        rule += (
            f"; with sessions this is {SESSIONS}, unless its weights are spread too widely, "
            "because others assume that decisions do not change what comes later"
        )
    return f"{rule}; {MODEL_ONLY} only if there is no other" if MODEL_ONLY in estimators else rule


def recommended(estimates: Sequence[Estimate]) -> Estimate:
    """Return the estimate, among those of one policy, that the rule recommends.

    An estimate without a value is recommended only if there is no other.
    """
    return min(estimates, key=_rank)


def _rank(one: Estimate) -> tuple[bool, bool, int, int, str]:
    kind = one.estimator
    place = ORDER.index(kind) if kind in ORDER else len(ORDER)
    return one.value != one.value, kind == MODEL_ONLY, len(one.cautions), place, kind
