"""Policies side by side, weighted by how well they predicted rewards."""

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats, Integers
from submax.core.checks import instance_of
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.binary import Binary
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.policies.listed import drawn_one

SUREST = 0.01
"""Predictions of 0/1 rewards are clipped to this distance from 0 and 1, so that no single surprise
decides between policies."""
PENDING_SHARE, MOST_PENDING = 0.05, 100
"""Policies learn when rows have grown by this share, and after this many rows at the latest. Fits
to a few more rows would cost much and change little."""
FAR_BEHIND, BACKLOG_SHARE, MOST_BACKLOG = 12.0, 0.5, 2000
"""A policy whose log score is this far behind the best, so that it decides nothing, learns only
when rows have grown by half, and after this many rows at the latest. It can still catch up."""
FIRST_PART, MOST_PARTS = 20, 6
"""Among the first rows, 20, 40, 80 … 640 rows are learned from before the next are predicted."""
LEAST_WEIGHT = 1e-3
"""A policy with a smaller weight decides nothing, and costs no time in decisions."""


@stored("predictive-mixture-state")
class PredictiveMixtureState(NamedTuple):
    """The states of the policies, and how well each predicted.

    ``loss [R, m]`` is the sum over rows of each policy's loss, −log p(r) for 0/1 rewards and
    (r − v)² for others. ``rows [R]`` is the number of rows. ``weight [R]`` is the sum of their
    weights and ``reward [R]`` that of their weighted rewards. All these sums but the number of rows
    fade as rows are added. ``shares [R, m]`` are the policies' weights.
    ``pending`` are rows that no policy has learned from or predicted yet, and ``backlogs`` those
    that each policy has predicted, but not learned from; None if there are none.
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

    def for_deciding(self) -> Self:
        """Return the state without what only further learning needs."""
        return self._replace(pending=None, backlogs=(None,) * len(self.members))


@dataclass(frozen=True)
class PredictiveMixture(ListingPolicy[PredictiveMixtureState]):
    """Mix the probabilities of policies: π(a | x) = Σ_m w_m π_m(a | x).

    Every policy predicts the reward of each decision before it learns from it, and w_m ∝
    Π p_m(r_i | x_i, a_i)^(i / n) over all n rows so far. What a policy was fitted to does not
    count, only what it foretold; the power lets a policy that needs many rows catch up. For 0/1
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
    def facts(self) -> Facts:
        facts = [policy.facts for policy in self.policies]
        return Facts(
            uses_context=any(one.uses_context for one in facts),
            needs_propensities=any(one.needs_propensities for one in facts),
            trains_models=any(one.trains_models for one in facts),
            forgets=any(one.forgets for one in facts),
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

    def act(
        self, state: PredictiveMixtureState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        if context.shape[:2] == (1, 1):
            return drawn_one(state.problem.space, self.probabilities(state, context)[0, 0], rng)
        return super().act(state, context, rng)

    def probabilities(self, state: PredictiveMixtureState, context: Floats) -> Floats:
        state.problem.check_context(context)
        parts = [
            share[:, None, None] * policy.probabilities(member, context)
            for policy, member, share in zip(
                self.policies, state.members, state.shares.T, strict=True
            )
            if share.any()
        ]
        return parts[0] if len(parts) == 1 else reduce(np.add, parts)

    def expected_rewards(self, state: PredictiveMixtureState, context: Floats) -> Floats:
        """Return the mean of what the policies expect, by their weights."""
        state.problem.check_context(context)
        found = np.zeros((*context.shape[:2], state.problem.space.size))
        for policy, member, share in zip(self.policies, state.members, state.shares.T, strict=True):
            if share.any():
                expected = _expected(policy, member, context)
                found += np.where(share > 0, share, 0.0)[:, None, None] * expected
        return found

    def update(
        self, state: PredictiveMixtureState, feedback: Feedback, rng: np.random.Generator
    ) -> PredictiveMixtureState:
        feedback.check(state.problem)
        there = feedback.weight > 0
        # Absent rows may hold anything; zeros are valid.
        feedback = Feedback(
            np.where(there[..., None], feedback.context, 0.0),
            np.where(there[..., None], feedback.action, 0),
            np.where(there, feedback.reward, 0.0),
            None if feedback.log_prob is None else np.where(there, feedback.log_prob, 0.0),
            np.where(there, feedback.weight, 0.0),
        )
        feedback = _joined(state.pending, feedback)
        waiting = np.count_nonzero(feedback.weight, axis=1)
        due = waiting >= np.minimum(MOST_PENDING, PENDING_SHARE * (state.rows + waiting))
        now, later = _split(feedback, due | self.facts.forgets)
        state = state._replace(pending=later)
        if now is None:
            return state
        loss, members, earlier = state.loss, state.members, np.zeros(now.weight.shape)
        parts = _parts(now.weight, state.rows)
        for weight in parts[:-1]:
            before = state.rows + np.count_nonzero(earlier, axis=1)
            loss = self._losses(state, members, now._replace(weight=weight), before, loss)
            earlier = earlier + weight
            # Only to predict the next part. What is kept has learned from all rows at once, which
            # some policies do better.
            members = tuple(
                policy.update(member, now._replace(weight=earlier), rng)
                for policy, member in zip(self.policies, state.members, strict=True)
            )
        before = state.rows + np.count_nonzero(earlier, axis=1)
        loss = self._losses(state, members, now._replace(weight=parts[-1]), before, loss)
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
            expected = _expected(policy, member, feedback.context)
            if expected.shape[1] == 1:
                expected = np.broadcast_to(expected, (*index.shape, expected.shape[2]))
            predicted = np.take_along_axis(expected, index[..., None], axis=-1)[..., 0]
            predicted = np.where(np.isnan(predicted), mean, predicted)
            loss[:, number] += (weight * _loss(predicted, reward, binary)).sum(axis=1)
        return loss

    def _learned(
        self,
        state: PredictiveMixtureState,
        feedback: Feedback,
        loss: Floats,
        rng: np.random.Generator,
    ) -> PredictiveMixtureState:
        """Let the policies learn, given their losses."""
        weight, reward = feedback.weight, feedback.reward
        binary = isinstance(state.problem.scale, Binary)
        rows = state.rows + np.count_nonzero(weight, axis=1)
        faded = _faded(state.rows, weight)
        total = state.weight * faded + weight.sum(axis=1)
        behind = _behind(loss, total, binary)
        members, backlogs = list(state.members), list(state.backlogs)
        for number, policy in enumerate(self.policies):
            backlog = _joined(backlogs[number], feedback)
            waiting = np.count_nonzero(backlog.weight, axis=1)
            due = waiting >= np.minimum(MOST_BACKLOG, BACKLOG_SHARE * rows)
            due |= (behind[:, number] < FAR_BEHIND) | self.facts.forgets
            lesson, backlogs[number] = _split(backlog, due)
            if lesson is not None:
                members[number] = policy.update(members[number], lesson, rng)
        return state._replace(
            members=tuple(members),
            backlogs=tuple(backlogs),
            loss=loss,
            rows=rows,
            weight=total,
            reward=state.reward * faded + (weight * reward).sum(axis=1),
            shares=_shares(behind),
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
        return restricted._replace(members=tuple(members))

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
        return state._replace(members=tuple(members))


def _joined(first: Feedback | None, second: Feedback) -> Feedback:
    """Return the rows of both; probabilities are known if all of them were logged."""
    if first is None:
        return second
    old, new = first.log_prob, second.log_prob
    return Feedback(
        np.concatenate([first.context, second.context], axis=1),
        np.concatenate([first.action, second.action], axis=1),
        np.concatenate([first.reward, second.reward], axis=1),
        None if old is None or new is None else np.concatenate([old, new], axis=1),
        np.concatenate([first.weight, second.weight], axis=1),
    )


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

    Policies predict a part after they have learned the parts before it, so that even the first
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
    factor: Floats = before / np.maximum(after, 1)
    return factor


def _expected(policy: Policy[Any], member: Any, context: Floats) -> Floats:
    """Return the expected reward of every action, ``[R, n, M]`` or ``[R, 1, M]``."""
    expected = policy.expected_rewards(member, context)
    if expected is None:
        raise InputError(
            f"a predictive mixture weighs policies by the rewards that they expect, and {policy} "
            "does not say: take policies with a belief, such as posterior-submax"
        )
    return expected


def _loss(predicted: Floats, reward: Floats, binary: bool) -> Floats:
    """Return the loss of each prediction; see `PredictiveMixtureState`."""
    if not binary:
        return (reward - predicted) ** 2
    chance = np.clip(predicted, SUREST, 1 - SUREST)
    loss: Floats = -np.log(np.where(reward > 0, chance, 1 - chance))
    return loss


def _behind(loss: Floats, weight: Floats, binary: bool) -> Floats:
    """Return by how much each policy's log score is below the best one, ``[R, m]``."""
    if not binary:
        loss = weight[:, None] / 2 * np.log(np.maximum(loss, 1e-300))
    behind: Floats = loss - loss.min(axis=1, keepdims=True)
    return behind


def _shares(behind: Floats) -> Floats:
    """Return the weight of each policy, ``[R, m]``; very small ones are 0."""
    shares = np.exp(-behind)
    shares /= shares.sum(axis=1, keepdims=True)
    shares = np.where(shares < LEAST_WEIGHT, 0.0, shares)
    kept: Floats = shares / shares.sum(axis=1, keepdims=True)
    return kept
