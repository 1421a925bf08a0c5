"""A relative of the reward-conditioned policy, by Bayes' rule."""

from dataclasses import dataclass, field, replace
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
from submax.policies.reward_conditioned import restricted_belief
from submax.research.rivals.value_networks import ValueBelief
from submax.strategies.weighted import SubMax


@serializable("bayes-reparameterized-state")
class BayesReparameterizedState(NamedTuple):
    """The reward model, what the estimator learned of the behaviour, and the two levels.

    ``levels [R, 2]`` are both rewards, and ``share [R, 2]`` is how often each was observed. If only
    some choices are ``eligible``, the reward model is restricted to them; the behaviour is known of
    all, and its probabilities are conditioned on them.
    """

    rewards: ValueBelief
    behaviour: Any
    levels: Floats
    share: Floats
    eligible: Choices | None = None

    @property
    def problem(self) -> Problem:
        return self.rewards.problem

    def restricted(self, choices: Choices) -> Self:
        return self._replace(rewards=self.rewards.restricted(choices), eligible=choices)


@dataclass(frozen=True)
class BayesReparameterized(TabularPolicy[BayesReparameterizedState]):
    """Condition on the reward by Bayes' rule: π(a | c, r) ∝ p(r | a, c) p(a | c).

    There are two rewards, such as 0 and 1. p(r | a, c) is a value network with two layers of
    ``hidden`` units, ``dropout`` and ``training``, which predicts the probability of the higher
    one. p(a | c), the behaviour policy, is learned by the ``estimator`` without the reward. Since
    log p(a, r | c) is the sum of both logarithms, training each by maximum likelihood maximizes the
    joint likelihood. The ``strategy`` turns π into the policy that decides; the probability of a
    level in a context is Σ_a p(r | a, c) p(a | c). Joint actions are listed. Before the first
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
                "sample sizes, which the bayes-reparameterized policy does not compute: use "
                "submax, optimistic, clipped, advantage, tilted or target"
            )

    traits = PolicyTraits(trains_models=True)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> BayesReparameterizedState:
        if problem.scale.moves or problem.scale.levels != 2:
            raise InputError(
                f"the bayes-reparameterized policy needs two rewards, such as 0 and 1, and not "
                f"{problem.scale}: use a policy such as rcp-softmax-submax"
            )
        rewards = ValueBelief.empty(problem, replicas, self.hidden)
        # The behaviour is learned as if every decision had reward 0.
        alike = replace(problem, scale=Binary(), slot_scale=None)
        behaviour = self.estimator.init(alike, replicas, rng)
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
        value = state.rewards.values(context)
        joint = np.stack([1.0 - value, value], axis=2) * behaviour
        prior = normalized(np.where(state.share[:, None] > 0, joint.sum(axis=-1), 0.0))
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


def _levels(rewards: ValueBelief) -> tuple[Floats, Floats]:
    """Return the levels of the observed rewards and how often each occurs, both ``[R, L]``."""
    buffer = rewards.buffer
    encoding = rewards.problem.scale.reward_encoding(buffer.reward, buffer.weight)
    return encoding.levels, buffer.level_share(encoding)
