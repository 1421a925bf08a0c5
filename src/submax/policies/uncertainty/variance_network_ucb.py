"""Upper confidence bounds whose width a second network predicts."""

from dataclasses import dataclass, field

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import below_one, non_negative, whole_number
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.policies.neural.highest import highest
from submax.policies.uncertainty.variance_belief import VarianceBelief


@dataclass(frozen=True)
class VarianceNetworkUCB(ListingPolicy[VarianceBelief]):
    """Take the action with the highest upper confidence bound, v(a, c) + γ s(a, c).

    v is a value network with two layers of ``hidden`` units, trained as ``training`` says, with the
    probability ``dropout`` of leaving out a unit in training. s² is a second network of the same
    form, which predicts the squared residual of the first. γ is ``width``: the larger, the more is
    explored. Actions with equal bounds share the probability.

    Reference: Rawson and Freeman (2021). `VarianceBelief` says where it departs from the paper.
    """

    width: float = 0.1
    hidden: int = 32
    dropout: float = 0.0
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        non_negative("width", self.width)
        whole_number("hidden", self.hidden, at_least=1)
        below_one("dropout", self.dropout)

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> VarianceBelief:
        return VarianceBelief.empty(problem, replicas, self.hidden)

    def probabilities(self, state: VarianceBelief, context: Floats) -> Floats:
        value, deviation = state.scores(context)
        return highest(value + self.width * deviation)

    def update(
        self, state: VarianceBelief, feedback: Feedback, rng: np.random.Generator
    ) -> VarianceBelief:
        return state.trained(feedback, self.training, self.dropout, rng)
