"""The policy that is conditioned on the advantage of a decision instead of its reward."""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import whole_number
from submax.core.conditioning.estimator import Estimator
from submax.core.conditioning.strategy import Strategy
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.rewards.continuous import Continuous
from submax.core.running.stored import stored
from submax.core.spaces.arms import Arms
from submax.core.spaces.space import Choices
from submax.estimators.softmax import Softmax
from submax.policies.neural.value_belief import ValueBelief, reward_shares
from submax.policies.reward_conditioned.conditioned_policy import check_parts
from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned
from submax.policies.reward_conditioned.reward_conditioned_state import RewardConditionedState
from submax.strategies.tilted import Tilted


@stored("advantage-conditioned-state")
class AdvantageConditionedState(NamedTuple):
    """The value network of contexts, and what a policy has learned from advantages."""

    problem: Problem
    baseline: ValueBelief
    conditioned: RewardConditionedState


@dataclass(frozen=True)
class AdvantageConditioned(Policy[AdvantageConditionedState]):
    """Learn π(a | c, A) with the advantage A = r − V(c), and marginalize over a tilted target.

    V(c) is the expected reward in context c under the logging policies, a network with two layers
    of ``hidden`` units that is trained as ``training`` says. The ``estimator`` learns π from the
    advantages, which have ``levels`` levels, quantiles of those observed. The ``strategy`` turns
    them into a policy: `Tilted` fits the distribution of advantages and tilts it towards high ones.

    Reference: Kumar et al. (2019), the variant with advantages (RCP-A).

    *Departs from the paper:* there is one step, so that V needs no bootstrapping. The advantage of
    a decision is computed once, when its reward is learned from, by the V of that time.
    """

    estimator: Estimator[Any] = field(default_factory=Softmax)
    strategy: Strategy = field(default_factory=Tilted)
    levels: int = 8
    hidden: int = 32
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        whole_number("hidden", self.hidden, at_least=1)
        check_parts(self.estimator, self.strategy, self.levels)

    @property
    def policy(self) -> RewardConditioned:
        """The policy that learns from advantages."""
        return RewardConditioned(self.estimator, self.strategy, levels=self.levels)

    @property
    def facts(self) -> Facts:
        return replace(self.policy.facts, trains_models=True)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> AdvantageConditionedState:
        one_arm = Problem(Arms(1), problem.context_width, problem.scale)
        # Rewards are scaled to the range from 0 to 1, so that an advantage is between −1 and 1.
        scale = Continuous(low=-1.0, high=1.0, quantiles=(0.0, 1.0), asked=self.levels)
        advantages = replace(problem, scale=scale)
        return AdvantageConditionedState(
            problem,
            ValueBelief.unlisted(one_arm, replicas, self.hidden),
            self.policy.init(advantages, replicas, rng),
        )

    def restricted(
        self, state: AdvantageConditionedState, choices: Choices
    ) -> AdvantageConditionedState | None:
        conditioned = self.policy.restricted(state.conditioned, choices)
        if conditioned is None:
            return None
        return state._replace(problem=state.problem.restricted(choices), conditioned=conditioned)

    def act(
        self, state: AdvantageConditionedState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        return self.policy.act(state.conditioned, context, rng)

    def log_prob(
        self, state: AdvantageConditionedState, context: Floats, action: Actions
    ) -> Floats:
        return self.policy.log_prob(state.conditioned, context, action)

    def probabilities(self, state: AdvantageConditionedState, context: Floats) -> Floats:
        return self.policy.probabilities(state.conditioned, context)

    def update(
        self, state: AdvantageConditionedState, feedback: Feedback, rng: np.random.Generator
    ) -> AdvantageConditionedState:
        feedback.check(state.problem)
        of_context = feedback._replace(action=np.zeros((*feedback.reward.shape, 1), dtype=np.int64))
        baseline = state.baseline.trained(of_context, self.training, 0.0, rng)
        if baseline is state.baseline:
            return state
        reward = reward_shares(state.problem.scale, baseline.buffer, feedback.reward)
        advantage = reward - baseline.values_of(of_context)
        conditioned = self.policy.update(
            state.conditioned, feedback._replace(reward=advantage), rng
        )
        return AdvantageConditionedState(state.problem, baseline, conditioned)
