"""ε-greedy on a value network."""

from dataclasses import dataclass, field

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import below_one, probability, whole_number
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.policies.neural.highest import highest
from submax.policies.neural.value_belief import ValueBelief


@dataclass(frozen=True)
class NeuralEpsilonGreedy(ListingPolicy[ValueBelief]):
    """Explore uniformly with probability ε, otherwise take the highest value in this context.

    π(a | c) = ε / M + (1 − ε) / T if a is one of the T actions with the highest f(a, c), otherwise
    ε / M. M is the number of joint actions, ε is ``epsilon``. f is the logit of a value network
    with two layers of ``hidden`` units, trained as ``training`` says, with the probability
    ``dropout`` of leaving out a unit in training.

    Reference: Xu et al. (2024), section 4.2.
    """

    epsilon: float = 0.1
    hidden: int = 32
    dropout: float = 0.1
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        probability("epsilon", self.epsilon)
        whole_number("hidden", self.hidden, at_least=1)
        below_one("dropout", self.dropout)

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ValueBelief:
        return ValueBelief.empty(problem, replicas, self.hidden)

    def probabilities(self, state: ValueBelief, context: Floats) -> Floats:
        greedy = highest(state.logits(context))
        mixed: Floats = self.epsilon / greedy.shape[-1] + (1 - self.epsilon) * greedy
        return mixed

    def update(
        self, state: ValueBelief, feedback: Feedback, rng: np.random.Generator
    ) -> ValueBelief:
        return state.trained(feedback, self.training, self.dropout, rng)
