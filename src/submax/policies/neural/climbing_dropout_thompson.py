"""Thompson sampling by Monte Carlo dropout, by climbing over joint choices."""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import below_one, whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.policies.neural.dropout_masks import Mask, dropout_masks
from submax.policies.neural.value_belief import ValueBelief
from submax.policies.neural.value_climb import check_choices, climbed_actions


@stored("climbing-dropout-state")
class ClimbingDropoutState(NamedTuple):
    """A value network, P dropout masks of its layers, and the actions at which climbs begin.

    ``first`` and ``second`` are ``[R, P, H]``, and ``starts`` is ``[R, T, S]``.
    """

    belief: ValueBelief
    first: Mask
    second: Mask
    starts: Integers

    @property
    def problem(self) -> Problem:
        """The problem that the network is trained for."""
        return self.belief.problem

    def restricted(self, choices: Choices) -> Self:
        """Return the network with these choices alone; climbs begin at choices among them."""
        sizes = [len(slot) for slot in choices]
        return self._replace(belief=self.belief.restricted(choices), starts=self.starts % sizes)


@dataclass(frozen=True)
class ClimbingDropoutThompson(Policy[ClimbingDropoutState]):
    """Apply a random dropout mask to a value network and take the best action that climbing finds.

    π(a | c) = Σ_m 1[a = climb(c; mask m)] / P. P = ``masks`` masks are drawn at each update, and a
    decision uses one of them, picked at random, for all its actions. From each of ``climbs`` random
    joint actions, coordinate ascent sets one slot after the other to its best choice, at most
    ``sweeps`` times. No joint action is listed. Before the first feedback the policy is uniform.
    The network has two layers of ``hidden`` units, and ``dropout`` is the probability of leaving
    out a unit.

    Reference: Gal and Ghahramani (2016); Hill et al. (2017) on climbing over slots.
    """

    dropout: float = 0.1
    masks: int = 20
    climbs: int = 4
    sweeps: int = 4
    hidden: int = 32
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        below_one("dropout", self.dropout)
        for name in ("masks", "climbs", "sweeps", "hidden"):
            whole_number(name, getattr(self, name), at_least=1)

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> ClimbingDropoutState:
        check_choices(problem.space, "the climbing-dropout-thompson policy")
        belief = ValueBelief.unlisted(problem, replicas, self.hidden)
        return ClimbingDropoutState(belief, *self._drawn(problem, replicas, rng))

    def act(
        self, state: ClimbingDropoutState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        picked = rng.integers(self.masks, size=context.shape[:2])
        action = self._climbed(state, context, picked)
        uniform = state.problem.space.uniform(context.shape[:2], rng)
        return ChosenActions(np.where(_learned(state)[..., None], action, uniform), None)

    def log_prob(self, state: ClimbingDropoutState, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        share = np.zeros(context.shape[:2])
        for mask in range(self.masks):
            end = self._climbed(state, context, np.full(context.shape[:2], mask))
            share += (end == action).all(axis=-1) / self.masks
        uniform = np.exp(-state.problem.space.log_measure)
        with np.errstate(divide="ignore"):
            return np.log(np.where(_learned(state), share, uniform))

    def update(
        self, state: ClimbingDropoutState, feedback: Feedback, rng: np.random.Generator
    ) -> ClimbingDropoutState:
        belief = state.belief.trained(feedback, self.training, self.dropout, rng)
        if belief is state.belief:
            return state
        new = np.any(feedback.weight > 0, axis=1)[:, None, None]
        first, second, starts = self._drawn(state.problem, len(new), rng)
        return ClimbingDropoutState(
            belief,
            np.where(new, first, state.first),
            np.where(new, second, state.second),
            np.where(new, starts, state.starts),
        )

    def _climbed(self, state: ClimbingDropoutState, context: Floats, picked: Integers) -> Integers:
        """Climb under the masks with the indices ``picked [R, n]``."""
        masks = (
            np.take_along_axis(state.first, picked[..., None], axis=1),
            np.take_along_axis(state.second, picked[..., None], axis=1),
        )
        return climbed_actions(state.belief, context, state.starts, self.sweeps, masks)

    def _drawn(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> tuple[Mask, Mask, Integers]:
        """Draw the dropout masks, and the actions at which climbs begin."""
        shape = (replicas, self.masks, self.hidden)
        first, second = dropout_masks(shape, self.dropout, rng)
        return first, second, problem.space.uniform((replicas, self.climbs), rng)


def _learned(state: ClimbingDropoutState) -> Booleans:
    """Return which replicas have rows to learn from, ``[R, 1]``."""
    learned: Booleans = (state.belief.buffer.filled > 0)[:, None]
    return learned
