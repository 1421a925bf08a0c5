"""A reason not to trust some estimates."""

from typing import NamedTuple

from submax.evaluation.contracts.off_policy_estimator import OffPolicyEstimator


class Caution(NamedTuple):
    """A sentence that says why some estimates should not be trusted.

    ``about`` says which estimates: those that rely on the `weights`, the `propensities`, the
    `slots`, the `groups` of actions, the `sessions`, those that change `single decisions` and leave
    the rest of a session to the log, those by `replay`, those that rely on the `model` of rewards
    alone, or `all`.
    """

    about: str
    sentence: str

    def concerns(self, estimator: OffPolicyEstimator) -> bool:
        """Return whether the caution concerns the estimates of this estimator."""
        return {
            "weights": estimator.uses_weights,
            "propensities": estimator.uses_propensities,
            "model": estimator.uses_model and not estimator.uses_weights,
            "slots": estimator.uses_slots,
            "groups": estimator.uses_groups,
            "sessions": estimator.uses_sessions,
            "single decisions": not estimator.uses_sessions,
            "replay": estimator.short == "replay",
            "all": True,
        }[self.about]
