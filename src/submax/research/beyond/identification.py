"""Identification of the best arm."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import (
    Allowed,
    Positive,
    Probability,
    as_whole_number,
    instance_of,
    probability,
)
from submax.core.environment import Environment
from submax.core.errors import InputError
from submax.core.numerics import highest
from submax.core.policy import Policy, PolicyTraits, TabularPolicy
from submax.core.problem import Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.policies.arm_statistics import ArmStatistics
from submax.policies.thompson import BetaParameter, largest_beta
from submax.policies.ucb import divergence
from submax.simulation.simulate import random_streams


@serializable("best-arm-state")
class BestArmState(NamedTuple):
    """The statistics of the arms, and a number that follows from them for each, ``[R, A]``."""

    problem: Problem
    arms: ArmStatistics
    derived: Floats


class BestArmPolicy(TabularPolicy[BestArmState]):
    """A policy that recommends an arm, and may know when it is certain enough to stop."""

    traits = PolicyTraits(uses_context=False)

    @abstractmethod
    def derived(self, arms: ArmStatistics) -> Floats:
        """Return what is computed from the statistics after every update, ``[R, A]``."""

    @abstractmethod
    def recommend(self, state: BestArmState) -> Integers:
        """Return the arm that is believed to be the best in each replica, ``[R]``."""

    @abstractmethod
    def stopped(self, state: BestArmState) -> Booleans:
        """Return in which replicas the policy is certain enough of its recommendation, ``[R]``."""

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> BestArmState:
        problem.scale.known_bounds(f"the {type(self).__name__} policy")
        return self._of(ArmStatistics.empty(problem, replicas))

    def update(
        self, state: BestArmState, feedback: Feedback, rng: np.random.Generator
    ) -> BestArmState:
        return self._of(state.arms.add(feedback))

    def restricted(self, state: BestArmState, choices: Choices) -> BestArmState:
        """Compute anew for these choices alone."""
        return self._of(state.arms.restricted(choices))

    def _of(self, arms: ArmStatistics) -> BestArmState:
        return BestArmState(arms.problem, arms, self.derived(arms))


HALVINGS = 25
"""Bisections for the common level of evidence, to a relative error of 3e-8."""
NEWTON_STEPS = 4
"""Newton steps for the shares at each level; each search starts from the last one."""
EDGE = 1e-6
"""Means are kept this far from 0 and 1, and the best this far above the others."""


def optimal_shares(mean: Floats) -> Floats:
    """Return w* = argmax_w min_{a ≠ 1} (w_1 + w_a) I(μ_1, μ_a), where arm 1 is the best.

    ``[R, A] -> [R, A]``. With x_a = w_a / w_1, g_a(x) = kl(μ_1, m) + x kl(μ_a, m) and
    m = (μ_1 + x μ_a) / (1 + x), all g_a(x_a) equal one level y, and y solves
    Σ_a kl(μ_1, m_a) / kl(μ_a, m_a) = 1. g_a is concave with the slope kl(μ_a, m), so Newton's
    method finds x_a.

    Reference: Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence,
    theorem 5 and lemma 4.

    >>> optimal_shares(np.array([[0.5, 0.45]])).round(2).tolist()
    [[0.5, 0.5]]
    """
    size = mean.shape[1]
    if size == 1:
        return np.ones_like(mean)
    mean = np.clip(mean, 2 * EDGE, 1 - 2 * EDGE)
    best = mean.max(axis=1, keepdims=True)
    first = mean.argmax(axis=1)
    others = np.arange(size) != first[:, None]
    lower = np.where(others, np.minimum(mean, best - EDGE), best / 2)
    low = np.zeros_like(best)
    high = np.where(others, divergence(best, lower), np.inf).min(axis=1, keepdims=True)
    ratio = np.ones_like(mean)
    for _ in range(HALVINGS):
        level = (low + high) / 2
        for _ in range(NEWTON_STEPS):
            middle = (best + ratio * lower) / (1 + ratio)
            slope = divergence(lower, middle)
            value = divergence(best, middle) + ratio * slope
            ratio = np.clip(ratio + (level - value) / np.maximum(slope, 1e-300), 0.0, 1e9)
        middle = (best + ratio * lower) / (1 + ratio)
        away = divergence(best, middle) / np.maximum(divergence(lower, middle), 1e-300)
        above = np.where(others, away, 0.0).sum(axis=1, keepdims=True) > 1
        low, high = np.where(above, low, level), np.where(above, level, high)
    shares = np.where(others, ratio, 1.0)
    return shares / shares.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class TopTwoThompson(BestArmPolicy):
    """Draw the best arm as Thompson sampling does; with probability 1 − b take another one instead.

    The other arm is drawn again and again until it differs from the first. With α_a the probability
    that arm a is the best, π(a) = α_a (b + (1 − b) Σ_{j≠a} α_j / (1 − α_j)). b is ``leader``. The
    prior of every arm is Beta(``alpha``, ``beta``). The policy stops when one α_a is at least
    1 − δ; δ is ``failure``. It recommends the arm with the highest α_a.

    Reference: Russo (2016), Simple Bayesian algorithms for best arm identification.
    """

    leader: Probability = 0.5
    alpha: BetaParameter = 1.0
    beta: BetaParameter = 1.0
    failure: Annotated[Positive, Allowed(probability)] = 0.05

    def derived(self, arms: ArmStatistics) -> Floats:
        """Return the posterior probability that each arm is the best."""
        successes = arms.successes("top-two Thompson sampling")
        return largest_beta(self.alpha + successes, self.beta + arms.pulls - successes)

    def probabilities(self, state: BestArmState, context: Floats) -> Floats:
        best = state.derived
        size = best.shape[1]
        if size == 1:
            return best[:, None]
        # Row j has the probabilities of the other arm if arm j is the first.
        other = np.where(np.eye(size, dtype=bool), 0.0, best[:, None, :])
        total = other.sum(axis=-1, keepdims=True)
        even = (1 - np.eye(size)) / (size - 1)
        other = np.where(total > 0, other / np.where(total > 0, total, 1.0), even)
        second = np.einsum("rj,rja->ra", best, other)
        listed: Floats = self.leader * best + (1 - self.leader) * second
        return listed[:, None]

    def recommend(self, state: BestArmState) -> Integers:
        return state.derived.argmax(axis=-1)

    def stopped(self, state: BestArmState) -> Booleans:
        return state.derived.max(axis=-1) >= 1 - self.failure


@dataclass(frozen=True)
class TrackAndStop(BestArmPolicy):
    """Take the arm that lacks most pulls to its optimal share w*_a(μ̂) of the t pulls.

    If an arm has fewer than √t − K/2 pulls, the arm with the fewest pulls is taken; otherwise the
    arm with the highest t w*_a − N_a (D-tracking). The policy stops when the evidence
    Z = min_a N_1 kl(μ̂_1, m) + N_a kl(μ̂_a, m) for its best arm 1 exceeds ln((1 + ln t) / δ), where m
    is the mean of both arms. δ is ``failure``. Rewards are scaled to 0 … 1 and counted as parts of
    successes.

    Reference: Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence,
    sections 3 and 6.
    """

    failure: Annotated[Positive, Allowed(probability)] = 0.05

    def derived(self, arms: ArmStatistics) -> Floats:
        """Return the optimal share of each arm's pulls; equal shares before the first pull."""
        shares = optimal_shares(_means(arms))
        pulled = arms.pulls.any(axis=1, keepdims=True)
        return np.where(pulled, shares, 1 / shares.shape[1])

    def probabilities(self, state: BestArmState, context: Floats) -> Floats:
        pulls = state.arms.pulls
        total = pulls.sum(axis=-1, keepdims=True)
        fewest = pulls.min(axis=-1, keepdims=True)
        forced = (fewest < np.sqrt(total) - pulls.shape[1] / 2) | (fewest == 0)
        score = np.where(forced, -pulls, total * state.derived - pulls)
        return highest(score, np.where(forced, 0.0, 1e-9 * (1 + total)))[:, None]

    def recommend(self, state: BestArmState) -> Integers:
        return _means(state.arms).argmax(axis=-1)

    def stopped(self, state: BestArmState) -> Booleans:
        pulls = state.arms.pulls
        if pulls.shape[1] == 1:
            return np.ones(len(pulls), dtype=bool)
        total = np.maximum(pulls.sum(axis=-1), 1.0)
        return self.evidence(state) > np.log((1 + np.log(total)) / self.failure)

    def evidence(self, state: BestArmState) -> Floats:
        """Return the generalized likelihood ratio of the best arm against all others, ``[R]``."""
        mean, pulls = _means(state.arms), state.arms.pulls
        replica = np.arange(len(pulls))
        best = mean.argmax(axis=-1)
        own_mean, own_pulls = mean[replica, best, None], pulls[replica, best, None]
        middle = (own_pulls * own_mean + pulls * mean) / np.maximum(own_pulls + pulls, 1.0)
        # An arm without pulls gives no evidence, whatever its mean.
        other = np.where(pulls > 0, divergence(mean, middle), 0.0)
        ratio = own_pulls * divergence(own_mean, middle) + pulls * other
        ratio[replica, best] = np.inf
        return ratio.min(axis=-1)


def _means(arms: ArmStatistics) -> Floats:
    """Return the mean success of every arm, 0 for an arm that was never taken."""
    return arms.successes("track-and-stop") / np.where(arms.pulls > 0, arms.pulls, 1.0)


class Identification(NamedTuple):
    """What R replicas found.

    ``decisions [R]`` is after how many decisions each replica was certain, or the budget if it was
    not; ``certain [R]`` says which. ``recommended [R]`` is the arm, and ``simple_regret [R]`` is
    how far its mean reward lies below that of the best arm.
    """

    decisions: Integers
    certain: Booleans
    recommended: Integers
    simple_regret: Floats

    @property
    def wrong(self) -> float:
        """The share of replicas whose recommended arm is not the best."""
        return float((self.simple_regret > 0).mean())


def identify(
    environment: Environment[Any],
    policy: Policy[Any],
    *,
    observations: int,
    replicas: int = 100,
    seed: int | Sequence[int] = 0,
) -> Identification:
    """Let a policy look for the best arm until it is certain, for at most ``observations``.

    Decisions are taken one by one. A replica that is certain goes on, because the others do, but
    its recommendation is that of the moment when it was certain.

    >>> from submax import Bernoulli, make_policy
    >>> found = identify(
    ...     Bernoulli.of([0.9, 0.1]), make_policy("track-and-stop"), observations=500, replicas=5
    ... )
    >>> found.recommended.tolist()
    [0, 0, 0, 0, 0]
    """
    instance_of("environment", environment, Environment, "Bernoulli(10)")
    instance_of("policy", policy, BestArmPolicy, "make_policy('track-and-stop')")
    finder: BestArmPolicy = policy  # type: ignore[assignment]  # checked above
    if environment.problem.context_width or environment.drifts:
        raise InputError(f"{environment} has no single best arm: use one without context or drift")
    count = as_whole_number("observations", observations, at_least=1)
    replicas = as_whole_number("replicas", replicas, at_least=1)
    world_rng, reward_rng, policy_rng = random_streams(seed, 3)
    world = environment.reset(replicas, world_rng)
    state = finder.init(environment.problem, replicas, policy_rng)
    context, weight = np.zeros((replicas, 1, 0)), np.ones((replicas, 1))
    decisions, certain = np.full(replicas, count), np.zeros(replicas, dtype=bool)
    recommended = np.zeros(replicas, dtype=np.int64)
    for decision in range(1, count + 1):
        action, log_prob = finder.act(state, context, policy_rng)
        reward = environment.reward(world, context, action, reward_rng)
        state = finder.record(state, action)
        feedback = Feedback(context, action, reward, log_prob, weight)
        state = finder.update(state, feedback, policy_rng)
        now = finder.stopped(state) & ~certain
        if now.any():
            decisions[now], recommended[now] = decision, finder.recommend(state)[now]
            certain |= now
        if certain.all():
            break
    recommended = np.where(certain, recommended, finder.recommend(state))
    chosen = environment.problem.space.action(recommended[:, None])
    regret = environment.regret(world, context, chosen)
    return Identification(decisions, certain, recommended, regret[:, 0])
