"""The contract of a policy."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import Checked
from submax.core.errors import InputError
from submax.core.numerics import draw, log_prob_of
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.spaces import Choices, Space


@dataclass(frozen=True)
class PolicyTraits:
    """Properties of a policy or an estimator that cannot be seen from its methods.

    - ``uses_context``: decisions may differ between contexts. If not, the context is ignored, and
      one table of probabilities serves all contexts.
    - ``needs_propensities``: learning needs the probabilities with which actions were chosen.
    - ``trains_models``: every update fits a model, such as a network, to all stored rows. Callers
      should therefore pass many rows at a time.
    - ``forgets``: old feedback counts less than new feedback, or not at all.
    - ``needs_pairs``: actions must be pairs of the same arms, ``Slots((K, K))``, and a reward says
      whether the first one won, as in duels.
    - ``learns``: feedback changes decisions. Uniform choice is a baseline that does not learn.

    The conformance suite checks what it can see of them.
    """

    uses_context: bool = True
    needs_propensities: bool = False
    trains_models: bool = False
    forgets: bool = False
    needs_pairs: bool = False
    learns: bool = True


class PolicyState(Protocol):
    """What is learned: a NamedTuple of arrays that also names the problem it belongs to."""

    @property
    def problem(self) -> Problem:
        """The problem the state was made for."""


State = TypeVar("State", bound=PolicyState)


class Policy(Checked, ABC, Generic[State]):
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
        """The state after more feedback."""

    def probabilities(self, state: State, context: Floats) -> Floats:
        """Probability of every joint action in each row, ``[R, n, M]``, or ``[R, 1, M]`` for all.

        A policy that computes them directly overrides this.
        """
        listing = state.problem.space.listing()
        replicas, rows, _ = context.shape
        repeated = np.repeat(context, len(listing), axis=1)
        actions = np.broadcast_to(
            np.tile(listing, (rows, 1)), (*repeated.shape[:2], listing.shape[1])
        )
        listed = np.exp(self.log_prob(state, repeated, actions))
        return listed.reshape(replicas, rows, len(listing))

    def record(
        self, state: State, action: Actions | None = None, *, upcoming: int | None = None
    ) -> State:
        """The state after decisions whose rewards are pending; most policies return it unchanged.

        ``action [R, n, S]`` are decisions that were just taken: call this after every ``act``.
        ``upcoming`` is how many decisions will be taken before the next rewards are learned from;
        live bandits pass only this.
        """
        return state

    def restricted(self, state: State, choices: Choices) -> Any:
        """The state on the problem with only these choices in each slot.

        With it, the policy decides as if the other choices had never existed; it is never updated.
        By default the state's own ``restricted`` is used. None: no rule for fewer actions exists.
        """
        rule = getattr(state, "restricted", None)
        return None if rule is None else rule(choices)

    def expected_rewards(self, state: State, context: Floats) -> Floats | None:
        """What every joint action is believed to earn, ``[R, n, M]`` or ``[R, 1, M]``.

        NaN stands for an action of which nothing is known. None, the default, means that the policy
        has no belief about rewards.
        """
        return None

    @property
    def traits(self) -> PolicyTraits:
        """What callers rely on beyond the decisions."""
        return PolicyTraits()


Draw: TypeAlias = Callable[[Floats, int, np.random.Generator], Integers]


def drawn_actions(
    space: Space, probabilities: Floats, rows: int, rng: np.random.Generator, how: Draw = draw
) -> ChosenActions:
    """Draw so many rows from ``[R, 1 or rows, M]``, and return the log-probability of each.

    A single decision takes fewer numpy calls, because they would dominate its latency.
    """
    if rows == 1 and len(probabilities) == 1:
        only = probabilities[0, 0]
        cumulated = only.cumsum()
        chosen = int(cumulated.searchsorted(rng.random() * cumulated[-1], "right"))
        log_prob = math.log(only.item(chosen))
        return ChosenActions(space.action(np.array([[chosen]])), np.array([[log_prob]]))
    index = how(probabilities, rows, rng)
    return ChosenActions(space.action(index), log_prob_of(probabilities, index))


class TabularPolicy(Policy[State]):
    """A policy defined by ``probabilities``; ``act`` and ``log_prob`` are derived from them."""

    @abstractmethod
    def probabilities(self, state: State, context: Floats) -> Floats:
        """Return the probability of every joint action, ``[R, n, M]`` or ``[R, 1, M]``."""

    def act(self, state: State, context: Floats, rng: np.random.Generator) -> ChosenActions:
        probabilities = self.probabilities(state, context)
        _check(self, probabilities, context, state.problem.space.size)
        return drawn_actions(state.problem.space, probabilities, context.shape[1], rng)

    def log_prob(self, state: State, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)
        probabilities = self.probabilities(state, context)
        return log_prob_of(probabilities, state.problem.space.index(action))


def _check(policy: object, probabilities: Floats, context: Floats, size: int) -> None:
    replicas, rows = context.shape[:2]
    if probabilities.shape not in ((replicas, rows, size), (replicas, 1, size)):
        raise InputError(
            f"the probabilities of {policy} must have shape [R, n, M] = {(replicas, rows, size)} "
            f"or [R, 1, M] = {(replicas, 1, size)}, not {probabilities.shape}: R replicas, n "
            "decisions, M joint actions"
        )
    if probabilities.min(initial=0) < 0:
        raise InputError(
            f"the probabilities of {policy} must be 0 or more, but one is {probabilities.min():.6g}"
        )


class WrapperPolicy(Policy[Any]):
    """Forwards everything but expected rewards to the field ``policy``.

    A wrapper that chooses the policy by the problem overrides ``wrapped`` and ``traits``.
    """

    policy: Policy[Any]

    def wrapped(self, problem: Problem) -> Policy[Any]:
        """Return the policy that decides in this problem."""
        return self.policy

    @property
    def traits(self) -> PolicyTraits:
        return self.policy.traits

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Any:
        return self.wrapped(problem).init(problem, replicas, rng)

    def act(self, state: Any, context: Floats, rng: np.random.Generator) -> ChosenActions:
        return self.wrapped(state.problem).act(state, context, rng)

    def log_prob(self, state: Any, context: Floats, action: Actions) -> Floats:
        return self.wrapped(state.problem).log_prob(state, context, action)

    def probabilities(self, state: Any, context: Floats) -> Floats:
        return self.wrapped(state.problem).probabilities(state, context)

    def restricted(self, state: Any, choices: Choices) -> Any:
        return self.wrapped(state.problem).restricted(state, choices)

    def update(self, state: Any, feedback: Feedback, rng: np.random.Generator) -> Any:
        return self.wrapped(state.problem).update(state, feedback, rng)

    def record(
        self, state: Any, action: Actions | None = None, *, upcoming: int | None = None
    ) -> Any:
        return self.wrapped(state.problem).record(state, action, upcoming=upcoming)


def probabilities_among(
    policy: Policy[Any], state: Any, context: Floats, choices: Choices
) -> Floats:
    """Return the probability of every joint action of the eligible ``choices``, ``[R, n, m]``.

    The policy decides by `Policy.restricted`. Without such a rule its probabilities are cut to the
    eligible actions and normalized; they are uniform where nothing is left. If they do not depend
    on the row, the result may be ``[R, 1, m]``.
    """
    space = state.problem.space
    if all(len(slot) == size for slot, size in zip(choices, space.choices, strict=True)):
        return policy.probabilities(state, context)
    return probabilities_by(policy, policy.restricted(state, choices), state, context, choices)


def probabilities_by(
    policy: Policy[Any], smaller: Any, state: Any, context: Floats, choices: Choices
) -> Floats:
    """Return ``probabilities_among``, given what ``Policy.restricted`` returned."""
    kept = state.problem.space.indices_of(choices)
    if smaller is not None:
        listed = policy.probabilities(smaller, context)
        # A subclass may list other actions than those of the problem that its state names.
        if listed.shape[-1] == len(kept):
            return listed
    table = policy.probabilities(state, context)[..., kept]
    total = table.sum(axis=-1, keepdims=True)
    normalized: Floats = np.full(table.shape, 1 / len(kept))
    np.divide(table, total, out=normalized, where=total > 0)
    return normalized


def act_among(
    policy: Policy[Any], state: Any, context: Floats, choices: Choices, rng: np.random.Generator
) -> ChosenActions:
    """Decide among the eligible ``choices`` once for every row of ``context [R, n, D]``."""
    listed = probabilities_among(policy, state, context, choices)
    index = draw(listed, context.shape[1], rng)
    action = state.problem.space.restricted(choices).action(index)
    parts = [np.asarray(slot)[action[..., place]] for place, slot in enumerate(choices)]
    return ChosenActions(np.stack(parts, axis=-1), log_prob_of(listed, index))
