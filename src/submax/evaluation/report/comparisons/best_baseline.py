"""The policy with the highest estimate as the baseline of all others."""

from collections.abc import Sequence

from submax.core.errors import InputError
from submax.evaluation.report.comparisons.difference import Difference
from submax.evaluation.report.estimate import LOGGING_POLICY, Estimate

BEST = "best"
"""The baseline that is chosen from the estimates: the policy with the highest recommended one."""


def check_several(policies: Sequence[str]) -> None:
    """Refuse fewer than two policies, of which none would be better than another."""
    if len(policies) < 2:
        raise InputError(
            f"the baseline is {BEST!r}, and the policies that can be evaluated are "
            f"{', '.join(policies) or 'none'}: give at least two, such as always=* for every "
            "action of the log",
            parameter="baseline",
        )


def best_baseline(estimates: Sequence[Estimate]) -> str:
    """Return the name of the policy with the highest recommended estimate."""
    values = {
        one.policy: one.value
        for one in estimates
        # A number that could not be computed is not equal to itself.
        if one.recommended and one.policy != LOGGING_POLICY and one.value == one.value
    }
    check_several([*values])
    return max(values, key=lambda name: values[name])


def best_note(
    best: str, estimates: Sequence[Estimate], differences: Sequence[Difference], level: float
) -> str:
    """Return which policies can be the best one, by differences whose intervals hold together.

    The true best policy is missing from the list only if its difference from one of the k − 1
    others is clearly negative and should not be. Each has the chance (1 − level) / (k − 1), also if
    the data choose which one it is compared with.
    """
    policies = [one for one in estimates if one.recommended and one.policy != LOGGING_POLICY]
    worse = {one.policy for one in differences if one.recommended and one.interval.high < 0}
    left = [one.policy for one in policies if one.policy not in {*worse, best}]
    sure = f"with {100 * level:g} % confidence, all comparisons together"
    if any(one.cautions for one in policies):
        sure += ", unless a warning concerns these numbers"
    if not left:
        return f"the best policy is {best}, {sure}"
    return (
        f"{best} has the highest estimate; {sure}, the best policy is {best} or one of these, "
        f"which are not clearly worse: {', '.join(left)}"
    )
