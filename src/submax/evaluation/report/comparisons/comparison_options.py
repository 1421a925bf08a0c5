"""How policies are compared on a log."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator
from submax.evaluation.logs.log import By


class ComparisonOptions(NamedTuple):
    """The arguments of ``compare`` after they were checked, but for the log and the policies.

    ``estimators`` are those that the caller chose; if there are none, all that apply are used.
    """

    estimators: dict[str, OffPolicyEstimator]
    interval: str
    level: float
    share: float
    by: By
    seed: int
    apart: bool
    reward_model: Any
    slices: Sequence[str]

    def settings(
        self, policies: Iterable[str], estimators: Iterable[str], reward_model: str, baseline: str
    ) -> dict[str, Any]:
        """Return what a report says about the comparison, by name."""
        return {
            "policies": ", ".join(policies),
            "estimators": ", ".join(estimators),
            "reward model": reward_model,
            "interval": self.interval,
            "level": self.level,
            "share": self.share,
            "by": self.by,
            "seed": self.seed,
            "baseline": baseline,
        }
