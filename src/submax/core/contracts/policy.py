"""Contract of a policy."""

from abc import ABC, abstractmethod
from typing import Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper
from submax.core.spaces.space import Choices


class PolicyState(Protocol):
    """What is learned: a NamedTuple of arrays that also names the problem it belongs to."""

    @property
    def problem(self) -> Problem:
        """The problem the state was made for."""


State = TypeVar("State", bound=PolicyState)


@runtime_checkable
class RestrictableState(Protocol):
    """What is learned about each action separately, so that some actions can be left out."""

    def restricted(self, choices: Choices) -> Self:
        """Return the state on the problem that has only these choices in each slot."""


class Policy(ABC, Generic[State]):
    """Hyper-parameters and the pure functions between states.

    Every array begins ``[R, n]``: R replicas, n decisions taken together.
    """

    @abstractmethod
    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> State:
        """The state before any feedback."""

    @abstractmethod
    def act(self, state: State, context: Floats, rng: np.random.Generator) -> ChosenActions:
        """Decide once for every row of ``context [R, n, D]``."""

    @abstractmethod
    def log_prob(self, state: State, context: Floats, action: Actions) -> Floats:
        """Log-probability that ``act`` chooses these actions, row by row."""

    @abstractmethod
    def update(self, state: State, feedback: Feedback, rng: np.random.Generator) -> State:
        """The state after feedback has come back."""

    def probabilities(self, state: State, context: Floats) -> Floats:
        """Probability of every joint action in each row, ``[R, n, M]``, or ``[R, 1, M]`` for all.

        A policy that has them at hand overrides this.
        """
        listing = state.problem.space.listing()
        replicas, rows, _ = context.shape
        repeated = np.repeat(context, len(listing), axis=1)
        actions = np.broadcast_to(
            np.tile(listing, (rows, 1)), (*repeated.shape[:2], listing.shape[1])
        )
        found = np.exp(self.log_prob(state, repeated, actions))
        return found.reshape(replicas, rows, len(listing))

    def restricted(self, state: State, choices: Choices) -> State | None:
        """Return the state on the problem with only these choices in each slot.

        It decides as if the other choices had never existed, and is not learned from. None means
        that the policy has no rule for fewer actions. The default asks the state.
        """
        return state.restricted(choices) if isinstance(state, RestrictableState) else None

    def expected_rewards(self, state: State, context: Floats) -> Floats | None:
        """The reward that every joint action is believed to earn, ``[R, n, M]`` or ``[R, 1, M]``.

        People who look at a decision see these numbers beside the probabilities; NaN stands for an
        action of which nothing is known. None, the default, means that the policy has no such
        belief, or does not say.
        """
        return None

    def record(
        self, state: State, action: Actions | None = None, *, upcoming: int | None = None
    ) -> State:
        """The state after decisions whose rewards are pending.

        ``action [R, n, S]`` are decisions that were just taken; ``simulate`` and loops of your own
        call this after every ``act``. ``upcoming`` is how many decisions will be taken before the
        next rewards are learned from. Most policies learn from rewards alone and need not override
        this.

        Live bandits give ``upcoming`` only, never ``action``. A version is fitted to rewarded
        decisions in the log, serves until the next version and is shared by processes; pending
        decisions that were recorded in it would be outdated at the first decision after the fit,
        and decisions whose reward never comes would stay pending for ever. So a policy must decide
        sensibly without ``action``: ``ucb1-pending`` then decides as ``ucb1``.
        """
        return state

    def stepper(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Stepper | None:
        """A fast form of this policy for simulations of single decisions, if it has one.

        It begins as ``init`` does. None, the default, means that ``act`` and ``update`` are used.
        """
        return None

    def for_single_decisions(self) -> "Policy[State]":
        """Return a policy that decides alike if one decision is taken between two updates.

        Decisions must have the same distribution, but their probabilities need not be known. A
        policy that prepares many decisions at every update overrides this; the default is the
        policy itself.
        """
        return self

    @property
    def facts(self) -> Facts:
        """What callers rely on beyond the decisions."""
        return Facts()
