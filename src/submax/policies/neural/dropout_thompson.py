"""Thompson sampling by Monte Carlo dropout."""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import below_one, whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.models.networks.replicas import where_chosen
from submax.policies.neural.dropout_masks import Mask, dropout_masks
from submax.policies.neural.highest import highest
from submax.policies.neural.value_belief import ValueBelief


@stored("dropout-state")
class DropoutState(NamedTuple):
    """A value network, and P dropout masks of its first and second layer, each ``[R, P, H]``."""

    belief: ValueBelief
    first: Mask
    second: Mask

    @property
    def problem(self) -> Problem:
        """The problem that the network is trained for."""
        return self.belief.problem

    def restricted(self, choices: Choices) -> Self:
        """Return the network with these choices alone."""
        return self._replace(belief=self.belief.restricted(choices))


@dataclass(frozen=True)
class DropoutThompson(Policy[DropoutState]):
    """Apply a random dropout mask to a value network and take the action with the highest value.

    π(a | c) = Σ_m 1[a = argmax_b f(b, c; mask m)] / P. f is the logit of a value network with two
    layers of ``hidden`` units, trained as ``training`` says, with the probability ``dropout`` of
    leaving out a unit. P = ``masks`` masks are drawn at each update. A decision uses one of them,
    picked at random, for all its actions; this makes π the share of masks under which a has the
    highest value.

    Reference: Gal and Ghahramani (2016); Riquelme et al. (2018).
    """

    dropout: float = 0.1
    masks: int = 100
    hidden: int = 32
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        below_one("dropout", self.dropout)
        whole_number("masks", self.masks, at_least=1)
        whole_number("hidden", self.hidden, at_least=1)

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> DropoutState:
        belief = ValueBelief.empty(problem, replicas, self.hidden)
        return DropoutState(belief, *self._masks(replicas, rng))

    def act(self, state: DropoutState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        replicas, rows = context.shape[:2]
        picked = rng.integers(self.masks, size=(replicas, rows))[..., None]
        masks = (
            np.take_along_axis(state.first, picked, axis=1),
            np.take_along_axis(state.second, picked, axis=1),
        )
        # Ties are broken at random.
        best = highest(state.belief.logits(context, masks)) > 0
        index = np.where(best, rng.random(best.shape), -1.0).argmax(axis=-1)
        return ChosenActions(state.problem.space.action(index), None)

    def log_prob(self, state: DropoutState, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        index = state.problem.space.index(action)[..., None]
        found = self.probabilities(state, context)
        with np.errstate(divide="ignore"):
            return np.log(np.take_along_axis(found, index, axis=-1)[..., 0])

    def probabilities(self, state: DropoutState, context: Floats) -> Floats:
        total = np.zeros((*context.shape[:2], state.problem.space.size))
        for mask in range(self.masks):
            one = slice(mask, mask + 1)
            total += highest(
                state.belief.logits(context, (state.first[:, one], state.second[:, one]))
            )
        return total / self.masks

    def update(
        self, state: DropoutState, feedback: Feedback, rng: np.random.Generator
    ) -> DropoutState:
        belief = state.belief.trained(feedback, self.training, self.dropout, rng)
        if belief is state.belief:
            return state
        # Replicas without new rows keep their masks.
        learned = np.any(feedback.weight > 0, axis=1)
        drawn = self._masks(len(state.first), rng)
        return DropoutState(belief, *where_chosen(learned, drawn, (state.first, state.second)))

    def _masks(self, replicas: int, rng: np.random.Generator) -> tuple[Mask, Mask]:
        return dropout_masks((replicas, self.masks, self.hidden), self.dropout, rng)
