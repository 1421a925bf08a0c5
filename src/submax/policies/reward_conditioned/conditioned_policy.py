"""What policies made of an estimator and a strategy have in common."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import instance_of, whole_number
from submax.core.conditioning.belief import Belief
from submax.core.conditioning.estimator import Estimator
from submax.core.conditioning.strategy import Strategy
from submax.core.conditioning.table import Table, no_probabilities, unknown_values
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.quantile_levels import MOST_QUANTILES
from submax.core.spaces.space import LISTING_LIMIT, Choices, Space
from submax.policies.reward_conditioned.decision_counts import DecisionCounts
from submax.policies.reward_conditioned.restricted_belief import RestrictedBelief
from submax.policies.reward_conditioned.reward_conditioned_state import RewardConditionedState
from submax.strategies.observation_weights import ObservationWeights


class ConditionedPolicy(Policy[RewardConditionedState]):
    """Learn by the ``estimator`` and decide by the ``strategy``; subclasses say how to draw.

    ``levels`` is the number of reward levels to condition on; None takes that of the problem's
    reward scale.
    """

    estimator: Estimator[Any]
    strategy: Strategy
    levels: int | None

    @property
    def facts(self) -> Facts:
        # Importance-sampled values of the levels need propensities.
        needs_propensities = self.strategy.facts.needs_values
        return replace(self.estimator.facts, needs_propensities=needs_propensities)

    @property
    def grouped_draws(self) -> bool:
        """Whether decisions of one batch are drawn in groups, see ``draw_grouped``."""
        return self.strategy.facts.grouped_draws and not self.estimator.facts.uses_context

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> RewardConditionedState:
        if self.levels is not None:
            problem = replace(problem, scale=problem.scale.with_levels(self.levels))
        self.strategy.check_levels(problem.scale.levels)
        self.check_space(problem.space)
        params = self.estimator.init(problem, replicas, rng)
        informed = np.zeros(replicas, dtype=bool)
        counts = None
        if self.strategy.facts.needs_sample_sizes:
            self.checked_weights(self.estimator.belief(params, _one_context(problem, replicas)))
            counts = DecisionCounts.none(replicas)
        values = self._values(problem, replicas, params)
        return RewardConditionedState(problem, params, informed, values, counts)

    @abstractmethod
    def check_space(self, space: Space) -> None:
        """Raise an InputError if the policy cannot draw actions from this space."""

    @abstractmethod
    def compute_probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        """Return the probabilities that decisions are drawn from: ``[R, n, D] -> [R, n, ...]``."""

    def cached_probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        """Return what ``compute_probabilities`` returns, from the state if they are stored there.

        They are stored if all contexts share them, see ``RewardConditionedState.shared``.
        """
        if state.shared is None:
            return self.compute_probabilities(state, context)
        if context.shape[1] == 1:
            return state.shared
        rows = (len(context), context.shape[1], state.shared.shape[-1])
        return np.broadcast_to(state.shared, rows)

    def check_rows(self, state: RewardConditionedState, context: Floats) -> None:
        """Raise an InputError if contexts do not fit the problem or the number of replicas."""
        state.problem.check_context(context)
        if len(context) != len(state.informed):
            raise InputError(
                f"the state has {len(state.informed)} replicas, and context has {len(context)}"
            )

    def expected_rewards(self, state: RewardConditionedState, context: Floats) -> Floats | None:
        """Return E[r | a] of the belief; see ``Belief.expected_rewards``."""
        space = state.problem.space
        if space.reals or space.size > LISTING_LIMIT:
            return None
        return self.belief(state, context).expected_rewards()

    def belief(self, state: RewardConditionedState, context: Floats) -> Belief:
        """Return what the estimator says about the actions that are eligible."""
        belief = self.estimator.belief(state.params, context)
        return belief if state.eligible is None else RestrictedBelief(belief, state.eligible)

    def restricted(
        self, state: RewardConditionedState, choices: Choices
    ) -> RewardConditionedState | None:
        """Restrict the table of conditioned probabilities; see `RestrictedBelief`."""
        if state.problem.space.reals or state.problem.space.size > LISTING_LIMIT:
            return None
        problem = state.problem.restricted(choices)
        return self._with_shared(state._replace(problem=problem, shared=None, eligible=choices))

    def table(self, state: RewardConditionedState, belief: Belief) -> Table:
        """Return the strategy's table, but with the probabilities of no action."""
        prior = belief.level_prior()
        if state.values is None:
            values = unknown_values(prior.shape)
        else:
            values = np.broadcast_to(state.values[:, None], prior.shape)
        levels = belief.levels()[:, None]
        if levels.shape != prior.shape:
            levels = np.broadcast_to(levels, prior.shape)
        table = Table(no_probabilities(prior.shape), levels, prior, values)
        if state.decision_counts is None:
            return table
        weights = self.checked_weights(belief).observation_weights()
        return table._replace(sample_sizes=state.decision_counts.sample_sizes(weights))

    def update(
        self, state: RewardConditionedState, feedback: Feedback, rng: np.random.Generator
    ) -> RewardConditionedState:
        params = self.estimator.fit(state.params, feedback, rng)
        informed = state.informed | (feedback.weight > 0).any(axis=1)
        counts = state.decision_counts
        counts = None if counts is None else counts.after_feedback(feedback)
        values = self._values(state.problem, len(informed), params)
        return self._with_shared(
            RewardConditionedState(state.problem, params, informed, values, counts)
        )

    def record(
        self,
        state: RewardConditionedState,
        action: Actions | None = None,
        *,
        upcoming: int | None = None,
    ) -> RewardConditionedState:
        counts = state.decision_counts
        if counts is None:
            return state
        if action is not None:
            counts = counts.after_decisions(action.shape[1])
        if upcoming is None:
            return state._replace(decision_counts=counts)
        whole_number("upcoming", upcoming, at_least=1)
        counts = counts.with_batch(upcoming)
        return self._with_shared(state._replace(decision_counts=counts, shared=None))

    def _with_shared(self, state: RewardConditionedState) -> RewardConditionedState:
        """Store the probabilities that all contexts share, so that no decision computes them."""
        if state.decision_counts is None or self.estimator.facts.uses_context:
            return state
        context = _one_context(state.problem, len(state.informed))
        return state._replace(shared=self.compute_probabilities(state, context))

    def _values(self, problem: Problem, replicas: int, params: Any) -> Floats | None:
        """Return the values of the levels if the strategy needs them, once for each update."""
        if not self.strategy.facts.needs_values:
            return None
        values = self.estimator.belief(params, _one_context(problem, replicas)).values()
        if values is None:
            raise InputError(
                f"the {type(self.strategy).__name__} strategy needs the importance-sampled reward "
                f"of each level, which the {type(self.estimator).__name__} estimator does not "
                "compute: take another strategy, such as submax"
            )
        return values

    def checked_weights(self, belief: Belief) -> ObservationWeights:
        """Return the belief, or raise an InputError if it cannot say what it is worth."""
        if not isinstance(belief, ObservationWeights):
            raise InputError(
                f"the {type(self.strategy).__name__} strategy needs to know how many observations "
                f"a belief is worth, which the {type(self.estimator).__name__} estimator does not "
                "say: take another strategy, such as submax"
            )
        return belief


def check_parts(estimator: object, strategy: object, levels: int | None) -> None:
    """Raise an InputError if these cannot be parts of a policy."""
    instance_of("estimator", estimator, Estimator, "Counting()")
    instance_of("strategy", strategy, Strategy, "SubMax()")
    if levels is not None:
        whole_number("levels", levels, at_least=2, at_most=MOST_QUANTILES)


def _one_context(problem: Problem, replicas: int) -> Floats:
    """Return one context in each replica, for questions whose answer is the same in all."""
    return np.zeros((replicas, 1, problem.context_width))
