"""ε-greedy on a value network, by climbing over joint choices."""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import below_one, probability, whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.policies.neural.value_belief import ValueBelief
from submax.policies.neural.value_climb import check_choices, climbed_actions


@stored("climbing-greedy-state")
class ClimbingGreedyState(NamedTuple):
    """A value network, and the actions ``starts [R, T, S]`` at which climbs begin."""

    belief: ValueBelief
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
class ClimbingEpsilonGreedy(Policy[ClimbingGreedyState]):
    """Explore uniformly with probability ε, else take the best action that climbing finds.

    π(a | c) = ε / M + (1 − ε) 1[a = climb(c)], with M joint actions. The value of (action ⊕
    context) is learned by a network with two layers of ``hidden`` units and ``dropout`` in
    training. From each of ``climbs`` random joint actions, which are drawn at every update,
    coordinate ascent sets one slot after the other to its best choice, at most ``sweeps`` times.
    No joint action is listed. Before the first feedback the policy is uniform.

    Reference: Sutton and Barto (2018), section 2.2; Hill et al. (2017) on climbing over slots.
    """

    epsilon: float = 0.1
    climbs: int = 4
    sweeps: int = 4
    hidden: int = 32
    dropout: float = 0.1
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        probability("epsilon", self.epsilon)
        for name in ("climbs", "sweeps", "hidden"):
            whole_number(name, getattr(self, name), at_least=1)
        below_one("dropout", self.dropout)

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> ClimbingGreedyState:
        check_choices(problem.space, "the climbing-epsilon-greedy policy")
        belief = ValueBelief.unlisted(problem, replicas, self.hidden)
        return ClimbingGreedyState(belief, problem.space.uniform((replicas, self.climbs), rng))

    def act(
        self, state: ClimbingGreedyState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        greedy = climbed_actions(state.belief, context, state.starts, self.sweeps)
        explores = (rng.random(greedy.shape[:2]) < self.epsilon) | ~_learned(state)
        uniform = state.problem.space.uniform(greedy.shape[:2], rng)
        action = np.where(explores[..., None], uniform, greedy)
        return ChosenActions(action, self._log_prob(state, greedy, action))

    def log_prob(self, state: ClimbingGreedyState, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        greedy = climbed_actions(state.belief, context, state.starts, self.sweeps)
        return self._log_prob(state, greedy, action)

    def update(
        self, state: ClimbingGreedyState, feedback: Feedback, rng: np.random.Generator
    ) -> ClimbingGreedyState:
        belief = state.belief.trained(feedback, self.training, self.dropout, rng)
        if belief is state.belief:
            return state
        new = np.any(feedback.weight > 0, axis=1)[:, None, None]
        drawn = state.problem.space.uniform(state.starts.shape[:2], rng)
        return ClimbingGreedyState(belief, np.where(new, drawn, state.starts))

    def _log_prob(self, state: ClimbingGreedyState, greedy: Integers, action: Integers) -> Floats:
        uniform = np.exp(-state.problem.space.log_measure)
        same = (greedy == action).all(axis=-1)
        mixed = self.epsilon * uniform + (1 - self.epsilon) * same
        with np.errstate(divide="ignore"):
            log_prob: Floats = np.log(np.where(_learned(state), mixed, uniform))
        return log_prob


def _learned(state: ClimbingGreedyState) -> Booleans:
    """Return which replicas have rows to learn from, ``[R, 1]``."""
    learned: Booleans = (state.belief.buffer.filled > 0)[:, None]
    return learned
