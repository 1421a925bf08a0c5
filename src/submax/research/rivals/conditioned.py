"""A relative of the reward-conditioned policy, by Bayes' rule."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import BelowOne, Count, instance_of
from submax.core.conditioning import Estimator, Strategy, Table, normalized
from submax.core.errors import InputError
from submax.core.policy import PolicyTraits, TabularPolicy
from submax.core.problem import Feedback, Problem
from submax.core.rewards import Binary
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.estimators.network import Softmax
from submax.models.training_settings import Training
from submax.policies.reward_conditioned import (
    restricted_belief,
)
from submax.research.rivals.value_networks import ValueBelief, reward_bounds
from submax.strategies.weighted import SubMax


@serializable("bayes-reparameterized-state")
class BayesReparameterizedState(NamedTuple):
    """The reward model, what the estimator learned of the behaviour, and the reward levels.

    ``levels [R, L]`` are the rewards conditioned on, and ``share [R, L]`` is how often each was
    observed. If only some choices are ``eligible``, the reward model is restricted to them; the
    behaviour is known of all, and its probabilities are conditioned on them.
    """

    rewards: ValueBelief
    behaviour: Any
    levels: Floats
    share: Floats
    eligible: Choices | None = None

    @property
    def problem(self) -> Problem:
        """The problem that the networks are trained for."""
        return self.rewards.problem

    def restricted(self, choices: Choices) -> Self:
        """Return the state with these choices alone."""
        return self._replace(rewards=self.rewards.restricted(choices), eligible=choices)


FLOOR = 1e-3
"""A level has at least this multiple of the uniform share, even if it was never observed."""
TILTS = np.linspace(-60.0, 60.0, 601)
"""Exponents among which the one with the wanted mean is found by interpolation."""


def level_probabilities(levels: Floats, share: Floats, value: Floats) -> Floats:
    """Return p(l | a) of actions with expected reward ``value``: ``[R, n, K] -> [R, n, L, K]``.

    ``levels [R, L]`` are the rewards and ``share [R, L]`` says how often each occurs; the value is
    scaled so that the lowest level is 0 and the highest 1. Of all distributions with this mean,
    p(l) ∝ share_l exp(t level_l) differs least from the share (in relative entropy). With two
    levels the probability of the higher one is the value.

    >>> levels, share = np.array([[0.0, 1.0]]), np.array([[0.9, 0.1]])
    >>> found = level_probabilities(levels, share, np.full((1, 1, 1), 0.3))
    >>> found.round(3).ravel().tolist()
    [0.7, 0.3]
    """
    count = levels.shape[1]
    if count == 2:
        return np.stack([1.0 - value, value], axis=2)
    result = np.empty((*value.shape[:2], count, value.shape[2]))
    for replica in range(len(levels)):
        span = max(levels[replica, -1] - levels[replica, 0], 1e-300)
        height = (levels[replica] - levels[replica, 0]) / span
        base = np.maximum(share[replica], FLOOR / count)
        tilted = base * np.exp(TILTS[:, None] * (height - height.max() * (TILTS[:, None] > 0)))
        tilted /= tilted.sum(axis=1, keepdims=True)
        mean = tilted @ height
        tilt = np.interp(value[replica], mean, TILTS)[:, None]
        power = np.log(base)[:, None] + tilt * height[:, None]
        power -= power.max(axis=1, keepdims=True)
        chances = np.exp(power)
        result[replica] = chances / chances.sum(axis=1, keepdims=True)
    return result


@dataclass(frozen=True)
class BayesReparameterized(TabularPolicy[BayesReparameterizedState]):
    """Condition on the reward by Bayes' rule: π(a | c, r) ∝ p(r | a, c) p(a | c).

    p(r | a, c) is a value network with two layers of ``hidden`` units, ``dropout`` and
    ``training``: it predicts the mean reward, and the probabilities of the levels follow from the
    mean (for two levels exactly; `level_probabilities` says how for more). p(a | c), the behaviour
    policy, is learned by the ``estimator`` without the reward. Since log p(a, r | c) is the sum of
    both logarithms, training each by maximum likelihood maximizes the joint likelihood. The
    ``strategy`` turns π into the policy that decides; the probability of a level in a context is
    Σ_a p(r | a, c) p(a | c). Rewards are thus no inputs that a network could treat as unrelated
    values: nearby rewards have similar policies. Joint actions are listed. Before the first
    feedback the policy is uniform.

    Reference: Ding et al. (2023), section 4.

    *Departs from the paper:* p(r | a, c) is a classifier of the reward and not an energy-based
    model, which a list of actions makes unnecessary. Instead of adaptive inference, which asks for
    the highest reward that is not too improbable, the strategy weighs the levels.
    """

    strategy: Strategy = field(default_factory=SubMax)
    estimator: Estimator[Any] = field(default_factory=Softmax)
    hidden: Count = 32
    dropout: BelowOne = 0.0
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        super().__post_init__()
        instance_of("strategy", self.strategy, Strategy, "SubMax()")
        instance_of("estimator", self.estimator, Estimator, "Softmax()")
        if self.strategy.traits.needs_values or self.strategy.traits.needs_sample_sizes:
            raise InputError(
                f"the {type(self.strategy).__name__} strategy needs importance-sampled values or "
                "sample sizes, which the bayes-reparameterized policy does not compute: take "
                "submax, optimistic, clipped, advantage, tilted or target"
            )

    traits = PolicyTraits(trains_models=True)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> BayesReparameterizedState:
        self.strategy.check_levels(problem.scale.levels)
        rewards = ValueBelief.empty(problem, replicas, self.hidden)
        behaviour = self.estimator.init(_without_reward(problem), replicas, rng)
        return BayesReparameterizedState(rewards, behaviour, *_levels(rewards))

    def probabilities(self, state: BayesReparameterizedState, context: Floats) -> Floats:
        table = self.table(state, context)
        found = self.strategy.probabilities(table)
        informed = (state.rewards.buffer.filled > 0)[:, None, None]
        return np.where(informed, found, 1 / found.shape[-1])

    def table(self, state: BayesReparameterizedState, context: Floats) -> Table:
        """Return π(a | c, level) of every joint action, and the levels' probabilities."""
        belief = self.estimator.belief(state.behaviour, context)
        if state.eligible is not None:
            belief = restricted_belief(belief, state.eligible)
        behaviour = belief.prob_of_all()[:, :, :1]
        mean = _between_levels(state, state.rewards.values(context))
        joint = level_probabilities(state.levels, state.share, mean) * behaviour
        prior = np.where(state.share[:, None] > 0, joint.sum(axis=-1), 0.0)
        prior = normalized(prior)
        levels = np.broadcast_to(state.levels[:, None], prior.shape)
        return Table(normalized(joint), levels, prior, np.full(prior.shape, np.nan))

    def update(
        self, state: BayesReparameterizedState, feedback: Feedback, rng: np.random.Generator
    ) -> BayesReparameterizedState:
        rewards = state.rewards.trained(feedback, self.training, self.dropout, rng)
        if rewards is state.rewards:
            return state
        alike = feedback._replace(reward=np.zeros(feedback.reward.shape))
        behaviour = self.estimator.fit(state.behaviour, alike, rng)
        return BayesReparameterizedState(rewards, behaviour, *_levels(rewards))


def _without_reward(problem: Problem) -> Problem:
    """Return the problem in which the behaviour is learned: every decision has reward 0."""
    return Problem(problem.space, problem.context_width, Binary(), problem.action_features)


def _levels(rewards: ValueBelief) -> tuple[Floats, Floats]:
    """Return the levels of the observed rewards and how often each occurs, both ``[R, L]``."""
    buffer = rewards.buffer
    encoding = rewards.problem.scale.reward_encoding(buffer.reward, buffer.weight)
    return encoding.levels, buffer.level_share(encoding)


def _between_levels(state: BayesReparameterizedState, value: Floats) -> Floats:
    """Return values on a scale on which the lowest level is 0 and the highest 1: ``[R, n, M]``.

    ``value`` is on the scale of the value network, from the lowest to the highest reward.
    """
    low, high = reward_bounds(state.problem.scale, state.rewards.buffer)
    known = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(known, low, 0.0), np.where(known, high, 1.0)
    mean = low[..., None] + value * (high - low)[..., None]
    first, last = state.levels[:, :1, None], state.levels[:, -1:, None]
    span = np.where(last > first, last - first, 1.0)
    return np.where(last > first, np.clip((mean - first) / span, 0.0, 1.0), 0.5)
