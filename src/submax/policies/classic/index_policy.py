"""Policies that take the arm with the highest index."""

from abc import abstractmethod
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats, Integers
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper
from submax.core.numerics.categorical import draw, log_prob_of
from submax.core.numerics.tally import tally
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.policies.classic.arm_statistics import ArmStatistics
from submax.policies.steppers.listed_stepper import ListedStepper


@stored("index-state")
class IndexState(NamedTuple):
    """The rewards that have come back, and the ``pending [R, A]`` pulls whose reward has not.

    ``order [R, A]`` are random numbers, drawn at every update with new rows. If pending pulls
    count, the arm with the larger number wins a tie.
    """

    problem: Problem
    arms: ArmStatistics
    pending: Floats
    order: Floats

    def restricted(self, choices: Choices) -> Self:
        """Return the state with the joint actions of these choices alone."""
        kept = self.problem.space.indices_of(choices)
        return self._replace(
            problem=self.problem.restricted(choices),
            arms=self.arms.restricted(choices),
            pending=self.pending[:, kept],
            order=self.order[:, kept],
        )


class ArmCounts(NamedTuple):
    """What an index is computed from; each array is ``[R, A]``, or ``[R, 1]`` for one arm each.

    - ``successes``: the sum of the rewards, scaled so that the lowest is 0 and the highest is 1.
    - ``received``: the pulls whose reward has come back.
    - ``pulls``: the pulls that count, with the pending ones if they count.
    - ``total``: the pulls of all arms that count, ``[R, 1]``.
    - ``best``: the highest mean of all arms, ``[R, 1]``.
    - ``arms``: the number of arms.
    """

    successes: Floats
    received: Floats
    pulls: Floats
    total: Floats
    best: Floats
    arms: int

    @property
    def means(self) -> Floats:
        """The mean reward between 0 and 1; 0 for an arm without rewards."""
        return self.successes / np.where(self.received > 0, self.received, 1.0)


class IndexPolicy(Policy[IndexState]):
    """Take the arm with the highest index; ties are broken at random for every decision.

    Under delay only rewards that have come back count. All decisions of a batch then take the same
    arm, unless arms tie. If ``pending`` is set, pulls whose reward has not come back count as pulls
    that leave the mean as it is, which spreads the decisions of a batch over several arms. The
    total number of pulls then includes the decisions of the present batch.
    """

    pending: bool

    @abstractmethod
    def index(self, counts: ArmCounts) -> Floats:
        """Return the index of every arm, elementwise; +∞ for an arm that must be tried first."""

    def successes(self, arms: ArmStatistics) -> Floats:
        """Return the sum of the rewards of every arm, scaled to 0 … 1 for each pull."""
        return arms.successes(f"the {type(self).__name__} policy")

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> IndexState:
        arms = ArmStatistics.empty(problem, replicas)
        self.successes(arms)
        return IndexState(problem, arms, np.zeros_like(arms.pulls), rng.random(arms.pulls.shape))

    def act(self, state: IndexState, context: Floats, rng: np.random.Generator) -> ChosenActions:
        rows = context.shape[1]
        if self.pending:
            choices = self._spread(state, rows)
            return ChosenActions(state.problem.space.action(choices), np.zeros(choices.shape))
        probabilities = self.probabilities(state, context)
        choices = draw(probabilities, rows, rng)
        return ChosenActions(
            state.problem.space.action(choices), log_prob_of(probabilities, choices)
        )

    def log_prob(self, state: IndexState, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        chosen = state.problem.space.index(action)
        if self.pending:
            return np.where(self._spread(state, context.shape[1]) == chosen, 0.0, -np.inf)
        return log_prob_of(self.probabilities(state, context), chosen)

    def probabilities(self, state: IndexState, context: Floats) -> Floats:
        if self.pending:
            return np.eye(state.problem.space.size)[self._spread(state, context.shape[1])]
        return self._tied(self._counts(state.arms, state.pending, 1))[:, None]

    def expected_rewards(self, state: IndexState, context: Floats) -> Floats:
        return state.arms.known_means()[:, None, :]

    def record(
        self, state: IndexState, action: Actions | None = None, *, upcoming: int | None = None
    ) -> IndexState:
        if not self.pending or action is None:
            return state
        chosen = state.problem.space.index(action)
        added = tally(chosen, np.ones(chosen.shape), state.pending.shape[-1])
        return state._replace(pending=state.pending + added)

    def update(self, state: IndexState, feedback: Feedback, rng: np.random.Generator) -> IndexState:
        arms, pending = state.arms.add(feedback), state.pending
        if self.pending:
            back = tally(
                state.problem.space.index(feedback.action),
                (feedback.weight > 0).astype(np.float64),
                arms.pulls.shape[-1],
            )
            pending = np.maximum(pending - back, 0.0)
        new = (feedback.weight > 0).any(axis=1, keepdims=True)
        order = np.where(new, rng.random(pending.shape), state.order)
        return IndexState(state.problem, arms, pending, order)

    def stepper(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Stepper | None:
        if self.pending:
            return None
        state = self.init(problem, replicas, rng)
        nothing, shape = state.pending, state.pending.shape
        return ListedStepper(
            problem,
            replicas,
            lambda arms: self._tied(self._counts(arms, nothing, 1))[:, None],
            lambda generator: generator.random(shape),
        )

    def _tied(self, counts: ArmCounts) -> Floats:
        """Return equal probabilities for the arms with the highest index, ``[R, A]``."""
        tied = _highest(self.index(counts))
        listed: Floats = tied / tied.sum(axis=-1, keepdims=True)
        return listed

    def _counts(self, arms: ArmStatistics, pending: Floats, decisions: int) -> ArmCounts:
        received = arms.pulls
        successes = self.successes(arms)
        pulls = received + pending
        total = pulls.sum(axis=-1, keepdims=True) + decisions - 1
        means = successes / np.where(received > 0, received, 1.0)
        best = means.max(axis=-1, keepdims=True)
        return ArmCounts(successes, received, pulls, total, best, received.shape[-1])

    def _spread(self, state: IndexState, decisions: int) -> Integers:
        """Return the arms of a batch if pending pulls count: ``[R, decisions]``.

        After each decision only the index of the arm that was taken is computed again.
        """
        counts = self._counts(state.arms, state.pending, decisions)
        index = self.index(counts)
        pulls, replica = counts.pulls.copy(), np.arange(len(index))
        choices = np.empty((len(index), decisions), dtype=np.int64)
        for column in range(decisions):
            arm = np.where(_highest(index), state.order, -1.0).argmax(axis=-1)
            choices[:, column] = arm
            pulls[replica, arm] += 1
            taken = (replica, arm)
            own = ArmCounts(
                counts.successes[taken][:, None],
                counts.received[taken][:, None],
                pulls[taken][:, None],
                counts.total,
                counts.best,
                counts.arms,
            )
            index[taken] = self.index(own)[:, 0]
        return choices


def _highest(index: Floats) -> Booleans:
    """Return which arms have the highest index."""
    highest: Booleans = index == index.max(axis=-1, keepdims=True)
    return highest
