"""The default policy, which has no hyper-parameter that has to be set."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats, Integers
from submax.core.checks import instance_of
from submax.core.errors import InputError
from submax.core.policy import (
    Policy,
    PolicyTraits,
    TabularPolicy,
    WrapperPolicy,
)
from submax.core.problem import Feedback, Problem
from submax.core.rewards import Binary
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.estimators.counting import Counting
from submax.policies.regressions import LogisticSubMax, PosteriorSubMax, RegressionPolicy
from submax.policies.reward_conditioned import RewardConditioned
from submax.policies.slots import PerSlot, PosteriorSlots
from submax.strategies.iterated import Iterated
from submax.strategies.tracking import Tracking

SUREST = 0.01
"""Predictions of 0/1 rewards are clipped to this distance from 0 and 1, so no single surprise
decides between policies."""
PENDING_SHARE, MOST_PENDING = 0.05, 100
"""Policies learn when rows have grown by this share, and after this many rows at the latest. Fits
to a few more rows would cost much and change little."""
FAR_BEHIND, BACKLOG_SHARE, MOST_BACKLOG = 12.0, 0.5, 2000
"""A policy whose log score is this far behind the best, so it decides nothing, learns only
when rows have grown by half, and after this many rows at the latest. It can still catch up."""
FIRST_PART, MOST_PARTS = 20, 6
"""Among the first rows, 20, 40, 80 … 640 rows are learned from before the next are predicted."""
LEAST_WEIGHT = 1e-3
"""A policy with a smaller weight decides nothing, and costs no time in decisions."""


@serializable("predictive-mixture-state")
class PredictiveMixtureState(NamedTuple):
    """The states of the policies, and how well each predicted.

    ``loss [R, m]`` is the sum over rows of each policy's loss, −log p(r) for 0/1 rewards and
    (r − v)² for others; ``weight [R]`` and ``reward [R]`` are the sums of weights and of weighted
    rewards. These sums fade as rows are added. ``rows [R]`` is the number of rows, and ``shares
    [R, m]`` are the policies' weights. ``pending`` are rows that no policy has learned from or
    predicted yet, and ``backlogs`` those that each policy has predicted, but not learned from.
    ``alike [R, 1, M]`` is the part of the mixture that is the same in all contexts: Σ_m w_m π_m
    over the policies that ignore the context. It is computed with each update, not for each
    decision.
    """

    problem: Problem
    members: tuple[Any, ...]
    loss: Floats
    rows: Integers
    weight: Floats
    reward: Floats
    shares: Floats
    pending: Feedback | None
    backlogs: tuple[Feedback | None, ...]
    alike: Floats | None = None

    def for_deciding(self) -> Self:
        return self._replace(pending=None, backlogs=(None,) * len(self.members))


@dataclass(frozen=True)
class PredictiveMixture(TabularPolicy[PredictiveMixtureState]):
    """Mix the probabilities of policies: π(a | x) = Σ_m w_m π_m(a | x).

    Every policy predicts the reward of each decision before it learns from it, and w_m ∝
    Π p_m(r_i | x_i, a_i)^(i / n) over all n rows so far. What a policy was fitted to does not
    count, only what it predicted; the power lets a policy that needs many rows catch up. For 0/1
    rewards p_m is the probability that it predicts. For others it is a normal density with the
    policy's own fitted variance, so w_m ∝ S_m^(−N/2) with S_m the sum of its squared errors and N
    that of the rows, both with the weights i / n. All policies learn from all rows.

    References: Dawid (1984), the prequential approach; van Erven, Grünwald and de Rooij (2012),
    catching up faster by switching sooner.
    """

    policies: tuple[Policy[Any], ...]

    def __post_init__(self) -> None:
        for policy in self.policies:
            instance_of("each of policies", policy, Policy, "RewardConditioned()")
        if not self.policies:
            raise InputError("policies must name at least one policy", parameter="policies")

    @property
    def traits(self) -> PolicyTraits:
        names = ("uses_context", "needs_propensities", "trains_models", "forgets")
        return PolicyTraits(
            **{name: any(getattr(one.traits, name) for one in self.policies) for name in names}
        )

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> PredictiveMixtureState:
        members = tuple(policy.init(problem, replicas, rng) for policy in self.policies)
        nothing = np.zeros(replicas)
        loss = np.zeros((replicas, len(members)))
        shares = np.full(loss.shape, 1 / len(members))
        rows = np.zeros(replicas, dtype=np.int64)
        return PredictiveMixtureState(
            problem, members, loss, rows, nothing, nothing, shares, None, (None,) * len(members)
        )

    def probabilities(self, state: PredictiveMixtureState, context: Floats) -> Floats:
        state.problem.check_context(context)
        if state.alike is not None and context.shape[:2] == (1, 1):
            return self._alone(state, state.alike[0, 0], context)[None, None]
        mixed: Floats | None = state.alike
        for number, (policy, member) in enumerate(zip(self.policies, state.members, strict=True)):
            if state.alike is not None and not self._uses_context[number]:
                continue
            share = state.shares[:, number]
            if share.any():
                found = share[:, None, None] * policy.probabilities(member, context)
                mixed = found if mixed is None else mixed + found
        assert mixed is not None, "the shares sum to 1"
        # If no policy that decides looks at the context, there is one row for all of them.
        rows = (len(mixed), context.shape[1], mixed.shape[2])
        return mixed if mixed.shape == rows else np.broadcast_to(mixed, rows)

    def _alone(self, state: PredictiveMixtureState, alike: Floats, context: Floats) -> Floats:
        """Return the probabilities in a single context of a single replica, fast: ``[K]``."""
        mixed, shares = alike, state.shares[0].tolist()
        for number, alone in self._by_context:
            if shares[number]:
                mixed = mixed + shares[number] * alone(state.members[number], context[0, 0])
        return mixed

    def _with_alike(self, state: PredictiveMixtureState) -> PredictiveMixtureState:
        """Store the part of the mixture that is the same in all contexts."""
        replicas, size = len(state.rows), state.problem.space.size
        context = np.zeros((replicas, 1, state.problem.context_width))
        alike = np.zeros((replicas, 1, size))
        for number, (policy, member) in enumerate(zip(self.policies, state.members, strict=True)):
            share = state.shares[:, number, None, None]
            if not self._uses_context[number] and share.any():
                alike += share * policy.probabilities(member, context)
        return state._replace(alike=alike)

    @cached_property
    def _uses_context(self) -> tuple[bool, ...]:
        return tuple(policy.traits.uses_context for policy in self.policies)

    @cached_property
    def _by_context(self) -> tuple[tuple[int, Callable[[Any, Floats], Floats]], ...]:
        """The number of each policy that uses the context, and how it decides in one."""

        def alone(policy: Policy[Any]) -> Callable[[Any, Floats], Floats]:
            if isinstance(policy, RegressionPolicy):
                return policy.alone
            return lambda member, context: policy.probabilities(member, context[None, None])[0, 0]

        return tuple(
            (number, alone(policy))
            for number, policy in enumerate(self.policies)
            if self._uses_context[number]
        )

    def update(
        self, state: PredictiveMixtureState, feedback: Feedback, rng: np.random.Generator
    ) -> PredictiveMixtureState:
        feedback.check(state.problem)
        there = feedback.weight > 0
        # Absent rows may hold anything; zeros are valid.
        feedback = feedback._replace(slot_reward=None).mapped(
            lambda part: np.where(there if part.ndim == 2 else there[..., None], part, 0)
        )
        if state.pending is not None:
            feedback = Feedback.joined([state.pending, feedback])
        waiting = np.count_nonzero(feedback.weight, axis=1)
        due = waiting >= np.minimum(MOST_PENDING, PENDING_SHARE * (state.rows + waiting))
        now, later = _split(feedback, due | self.traits.forgets)
        state = state._replace(pending=later)
        if now is None:
            return state
        loss, members, earlier = state.loss, state.members, np.zeros(now.weight.shape)
        for weight in _parts(now.weight, state.rows):
            if earlier.any():
                # Only to predict this part. What is kept has learned from all rows at once, which
                # some policies do better.
                members = tuple(
                    policy.update(member, now._replace(weight=earlier), rng)
                    for policy, member in zip(self.policies, state.members, strict=True)
                )
            before = state.rows + np.count_nonzero(earlier, axis=1)
            loss = self._losses(state, members, now._replace(weight=weight), before, loss)
            earlier = earlier + weight
        return self._learned(state, now, loss, rng)

    def _losses(
        self,
        state: PredictiveMixtureState,
        members: tuple[Any, ...],
        feedback: Feedback,
        before: Integers,
        loss: Floats,
    ) -> Floats:
        """Return the losses after these rows, as ``members`` predict them after ``before`` rows."""
        weight, reward = feedback.weight, feedback.reward
        index = state.problem.space.index(feedback.action)
        binary = isinstance(state.problem.scale, Binary)
        known = state.weight[:, None] + binary
        mean = (state.reward[:, None] + 0.5 * binary) / np.where(known > 0, known, 1.0)
        loss = loss * _faded(before, weight)[:, None]
        for number, (policy, member) in enumerate(zip(self.policies, members, strict=True)):
            expected = policy.expected_rewards(member, feedback.context)
            if expected is None:
                raise InputError(
                    "a predictive mixture weights policies by their expected rewards, but "
                    f"{policy} has none: use policies with a belief, such as posterior-submax"
                )
            if expected.shape[1] == 1:
                expected = np.broadcast_to(expected, (*index.shape, expected.shape[2]))
            predicted = np.take_along_axis(expected, index[..., None], axis=-1)[..., 0]
            predicted = np.where(np.isnan(predicted), mean, predicted)
            chance = np.clip(np.where(reward > 0, predicted, 1 - predicted), SUREST, 1 - SUREST)
            lost = -np.log(chance) if binary else (reward - predicted) ** 2
            loss[:, number] += (weight * lost).sum(axis=1)
        return loss

    def _learned(
        self,
        state: PredictiveMixtureState,
        feedback: Feedback,
        loss: Floats,
        rng: np.random.Generator,
    ) -> PredictiveMixtureState:
        weight, reward = feedback.weight, feedback.reward
        binary = isinstance(state.problem.scale, Binary)
        rows = state.rows + np.count_nonzero(weight, axis=1)
        faded = _faded(state.rows, weight)
        total = state.weight * faded + weight.sum(axis=1)
        # By how much the log score of each policy is below the best one.
        score = loss if binary else total[:, None] / 2 * np.log(np.maximum(loss, 1e-300))
        behind = score - score.min(axis=1, keepdims=True)
        shares = np.exp(-behind)
        shares /= shares.sum(axis=1, keepdims=True)
        shares = np.where(shares < LEAST_WEIGHT, 0.0, shares)
        members, backlogs = list(state.members), list(state.backlogs)
        for number, policy in enumerate(self.policies):
            backlog = Feedback.joined(
                [one for one in (backlogs[number], feedback) if one is not None]
            )
            waiting = np.count_nonzero(backlog.weight, axis=1)
            due = waiting >= np.minimum(MOST_BACKLOG, BACKLOG_SHARE * rows)
            due |= (behind[:, number] < FAR_BEHIND) | self.traits.forgets
            lesson, backlogs[number] = _split(backlog, due)
            if lesson is not None:
                members[number] = policy.update(members[number], lesson, rng)
        return self._with_alike(
            state._replace(
                members=tuple(members),
                backlogs=tuple(backlogs),
                loss=loss,
                rows=rows,
                weight=total,
                reward=state.reward * faded + (weight * reward).sum(axis=1),
                shares=shares / shares.sum(axis=1, keepdims=True),
            )
        )

    def restricted(
        self, state: PredictiveMixtureState, choices: Choices
    ) -> PredictiveMixtureState | None:
        members = [
            policy.restricted(member, choices)
            for policy, member in zip(self.policies, state.members, strict=True)
        ]
        if any(member is None for member in members):
            return None
        restricted = state.for_deciding()._replace(problem=state.problem.restricted(choices))
        return self._with_alike(restricted._replace(members=tuple(members)))

    def record(
        self,
        state: PredictiveMixtureState,
        action: Actions | None = None,
        *,
        upcoming: int | None = None,
    ) -> PredictiveMixtureState:
        members = [
            policy.record(member, action, upcoming=upcoming)
            for policy, member in zip(self.policies, state.members, strict=True)
        ]
        if upcoming is None or state.alike is None:
            return state._replace(members=tuple(members))
        return self._with_alike(state._replace(members=tuple(members)))


def _split(feedback: Feedback, due: Booleans) -> tuple[Feedback | None, Feedback | None]:
    """Return the rows of the replicas that are due ``[R]``, and those of the others."""
    there = feedback.weight.any(axis=1)
    if due[there].all():
        return feedback, None
    if not due[there].any():
        return None, feedback
    now, later = (
        feedback._replace(weight=np.where(which[:, None], feedback.weight, 0.0))
        for which in (due, ~due)
    )
    return now, later


def _parts(weight: Floats, rows: Integers) -> list[Floats]:
    """Split the first rows into parts: the weights ``[R, n]`` of the rows of each part, else 0.

    Policies predict a part after they have learned the parts before it, so even the first
    rows, which often come together, say who predicts well. The first part ends at ``FIRST_PART``
    rows of a replica, each further one at twice as many as the one before.
    """
    there = weight > 0
    number = rows[:, None] + np.cumsum(there, axis=1)
    part = np.ceil(np.log2(np.maximum(number / FIRST_PART, 1.0)))
    part = np.where(there, np.minimum(part, MOST_PARTS), -1.0)
    found = [np.where(part == one, weight, 0.0) for one in np.unique(part) if one >= 0]
    return found if len(found) > 1 else [weight]


def _faded(before: Integers, weight: Floats) -> Floats:
    """Return the factor of sums over ``before`` rows when rows with a weight are added, ``[R]``."""
    after = before + np.count_nonzero(weight, axis=1)
    return before / np.maximum(after, 1)


MOST_MIXED_NUMBERS = 12
"""Contexts with more numbers than this are left to the regressions on kernels alone. With more, the
mixture loses a few per cent on tables before it knows which policy predicts best."""


@dataclass(frozen=True)
class Adaptive(WrapperPolicy):
    """Decide by counts if there is no context, and by Bayesian regressions if there is one.

    - For arms without context it is `RewardConditioned` with counts whose smoothing and memory are
      fitted, and the strategy `Tracking`.
    - For arms with a context it is ``policy``, a `PosteriorSubMax`. If rewards are 0 or 1 and the
      context has at most 12 numbers, it is a `PredictiveMixture` of this, of counts that ignore the
      context, to which SubMax is applied as often, and of `LogisticSubMax`: the policy that
      predicted rewards best decides.
    - For several slots, with or without context, it is `PosteriorSlots`, which does not list joint
      actions.
    - For several slots that have a reward each, it is `PerSlot`: every slot is decided as arms are.

    All four fit their parameters to the data and know the probability of every decision. Not in
    the paper; see docs/research.
    """

    policy: PosteriorSubMax = field(default_factory=PosteriorSubMax)

    def wrapped(self, problem: Problem) -> Policy[Any]:
        slot_rewards, slots, arms, mixture = self._policies
        if problem.slot_scale is not None:
            return slot_rewards
        if problem.space.slots > 1:
            return slots
        if not problem.context_width:
            return arms
        mixed = (
            isinstance(problem.scale, Binary)
            and problem.context_width <= MOST_MIXED_NUMBERS
            # Only the regressions on kernels make use of action features.
            and not problem.action_features
        )
        return mixture if mixed else self.policy

    @cached_property
    def _policies(self) -> tuple[Policy[Any], ...]:
        """For slots with a reward each, other slots, arms, and arms with a context."""
        memory, depth = self.policy.memory, self.policy.depth
        counts = RewardConditioned(Counting(1.0, memory), Iterated(depth))
        return (
            # In the problem of one slot there are no rewards of slots, so this does not recur.
            PerSlot(self),
            PosteriorSlots(depth=depth),
            RewardConditioned(Counting("fitted", memory="fitted"), Tracking()),
            PredictiveMixture((counts, LogisticSubMax(memory=memory), self.policy)),
        )
