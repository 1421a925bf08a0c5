"""Upper confidence bounds on a value network."""

from dataclasses import dataclass

from submax.core.arrays import Floats
from submax.core.checks import non_negative
from submax.core.contracts.listing_policy import ListingPolicy
from submax.policies.neural.gradient_belief import GradientBelief
from submax.policies.neural.gradient_feature_policy import GradientFeaturePolicy
from submax.policies.neural.highest import highest


@dataclass(frozen=True)
class NeuralUCB(GradientFeaturePolicy, ListingPolicy[GradientBelief]):
    """Take the action with the highest upper confidence bound, f(a, c) + γ √(gᵀ U⁻¹ g).

    f is the logit of a value network with two layers of ``hidden`` units, trained as ``training``
    says. g is the gradient of f with respect to the network's parameters, U the diagonal of
    ρ I + Σ g gᵀ over the observations. ρ is ``ridge``; γ is ``width``: the larger, the more is
    explored. Actions with equal bounds share the probability, as all do before the first feedback.

    Reference: Zhou et al. (2020). `GradientBelief` says where it departs from the paper.
    """

    width: float = 0.1

    def __post_init__(self) -> None:
        non_negative("width", self.width)
        super().__post_init__()

    def probabilities(self, state: GradientBelief, context: Floats) -> Floats:
        logit, deviation = state.scores(context)
        return highest(logit + self.width * deviation)
