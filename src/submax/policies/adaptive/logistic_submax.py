"""SubMax on posterior draws of logistic regressions."""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit

from submax.core.arrays import Floats
from submax.core.checks import non_negative, whole_number
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.memory.memory import Memory
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.models.regression.logistic_regressions import LogisticRegressions
from submax.models.regression.sampled_rows import RegressionRows
from submax.strategies.iterated import mean_submax_of

MOST_SCORES = 2**21
"""About this many scores of actions are held in memory at a time: 16 MB."""
WIDEST = 0.5
"""The largest share of the posterior's deviation that draws have."""


@stored("logistic-submax-state")
class LogisticSubMaxState(NamedTuple):
    """The regressions of each replica."""

    problem: Problem
    beliefs: tuple[LogisticRegressions, ...]

    def restricted(self, choices: Choices) -> Self:
        """Return the state with the joint actions of these choices alone."""
        kept = self.problem.space.indices_of(choices)
        return self._replace(
            problem=self.problem.restricted(choices),
            beliefs=tuple(belief.restricted(kept) for belief in self.beliefs),
        )


@dataclass(frozen=True)
class LogisticSubMax(ListingPolicy[LogisticSubMaxState]):
    """Apply SubMax to posterior draws of logistic regressions, and average the policies.

    P(1 | a, x) = σ(θ_a · (1, z)), see `LogisticRegressions`; a reward between the lowest and the
    highest possible one counts as part of a success. Each draw has the share min(½, ``width`` / F)
    of the posterior's deviation, with F coefficients, and gives the expected reward of every
    action and so a policy, as in `PosteriorSubMax`. All F − 1 numbers of a context are used,
    however many there are. Draws of full width explore too much where coefficients are many
    (Agrawal and Goyal, 2013), while few coefficients need some width: contexts that repeat do not
    explore by themselves.

    Not in the paper, whose SubMax it applies to draws; see docs/research.
    """

    depth: int = 4
    width: float = 4.0
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        whole_number("depth", self.depth, at_least=1, at_most=100)
        non_negative("width", self.width)
        if self.memory.window is not None or self.memory.reservoir is not None:
            raise InputError(
                "the logistic-submax policy remembers sums, and cannot take single rows out of "
                "them again: use memory = { discount = 0.999 } instead of a window or reservoir"
            )

    @property
    def facts(self) -> Facts:
        return Facts(forgets=self.memory.forgets)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> LogisticSubMaxState:
        problem.scale.known_bounds("the logistic-submax policy")
        problem.space.check_listable("the logistic-submax policy", "take posterior-slots")
        belief = LogisticRegressions.unlearned(problem.context_width)
        return LogisticSubMaxState(problem, (belief,) * replicas)

    def probabilities(self, state: LogisticSubMaxState, context: Floats) -> Floats:
        state.problem.check_context(context)
        replicas, rows, _ = context.shape
        size = state.problem.space.size
        found = np.full((replicas, rows, size), 1 / size)
        share = min(self.width / (1 + state.problem.context_width), WIDEST)
        for replica, belief in enumerate(state.beliefs):
            if belief.draws is None:
                continue
            step = max(1, MOST_SCORES // (len(belief.draws) * size))
            for begin in range(0, rows, step):
                part = slice(begin, begin + step)
                score, deviation = belief.scores(context[replica, part])
                value = expit(score[:, None] + share * deviation)
                value -= value.mean(axis=-1, keepdims=True)
                found[replica, part] = mean_submax_of(value, self.depth)
        return found

    def expected_rewards(self, state: LogisticSubMaxState, context: Floats) -> Floats:
        state.problem.check_context(context)
        low, high = state.problem.scale.known_bounds("the logistic-submax policy")
        found = np.full((*context.shape[:2], state.problem.space.size), np.nan)
        for replica, belief in enumerate(state.beliefs):
            if belief.mean is not None:
                found[replica] = low + (high - low) * belief.expected(context[replica])
        return found

    def update(
        self, state: LogisticSubMaxState, feedback: Feedback, rng: np.random.Generator
    ) -> LogisticSubMaxState:
        feedback.check(state.problem)
        low, high = state.problem.scale.known_bounds("the logistic-submax policy")
        # Each replica has a stream of its own, so that none depends on the rows of another.
        streams = rng.spawn(len(state.beliefs))
        beliefs = []
        for replica, (belief, stream) in enumerate(zip(state.beliefs, streams, strict=True)):
            rows = RegressionRows.of(feedback, replica, state.problem)
            if len(rows.reward):
                rows = rows._replace(reward=(rows.reward - low) / (high - low))
                size, discount = state.problem.space.size, self.memory.discount
                belief = belief.learned(rows, size, discount, stream)
            beliefs.append(belief)
        return state._replace(beliefs=tuple(beliefs))
