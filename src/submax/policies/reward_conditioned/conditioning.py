"""What policies made of an estimator and a strategy have in common."""

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import whole_number
from submax.core.conditioning.estimator import Estimator
from submax.core.conditioning.strategy import Strategy
from submax.core.conditioning.table import Table, no_probabilities, unknown_values
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.quantile_levels import MOST_QUANTILES
from submax.core.spaces.space import Space
from submax.policies.reward_conditioned.pace import Pace
from submax.policies.reward_conditioned.reward_conditioned_state import RewardConditionedState


class Conditioning(Policy[RewardConditionedState]):
    """Learn by the ``estimator``, and tell the ``strategy`` what it needs; draw as subclasses say.

    ``levels`` is how many rewards are conditioned on, where it is not what the scale of the
    problem says.
    """

    estimator: Estimator[Any]
    strategy: Strategy
    levels: int | None

    @property
    def facts(self) -> Facts:
        # A strategy that weighs levels by their importance-sampled reward needs propensities.
        return replace(self.estimator.facts, needs_propensities=self.strategy.needs_values)

    @property
    def gives_lots(self) -> bool:
        """Whether decisions taken together share their probabilities and come in lots."""
        return self.strategy.gives_lots and not self.estimator.facts.uses_context

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> RewardConditionedState:
        """The estimator's belief before any data."""
        if self.levels is not None:
            problem = replace(problem, scale=problem.scale.with_levels(self.levels))
        self.strategy.check_levels(problem.scale.levels)
        self.check_space(problem.space)
        params = self.estimator.init(problem, replicas, rng)
        nobody = np.zeros(replicas, dtype=bool)
        pace = Pace.unknown(replicas) if self.strategy.needs_experience else None
        return RewardConditionedState(problem, params, nobody, self._values(params), pace)

    @abstractmethod
    def check_space(self, space: Space) -> None:
        """Refuse actions that it cannot draw."""

    @abstractmethod
    def find_chances(self, state: RewardConditionedState, context: Floats) -> Floats:
        """The probabilities that decisions are drawn from: ``[R, n, D] -> [R, n, ...]``."""

    def chances(self, state: RewardConditionedState, context: Floats) -> Floats:
        """The same, as the state has them where all contexts share them."""
        if state.shared is None:
            return self.find_chances(state, context)
        if context.shape[1] == 1:
            return state.shared
        rows = (len(context), context.shape[1], state.shared.shape[-1])
        return np.broadcast_to(state.shared, rows)

    def check_rows(self, state: RewardConditionedState, context: Floats) -> None:
        """Refuse contexts that are not the problem's, or those of another number of replicas."""
        state.problem.check_context(context)
        if len(context) != len(state.informed):
            raise InputError(
                f"the state has {len(state.informed)} replicas, and context has {len(context)}"
            )

    def table(self, state: RewardConditionedState, context: Floats) -> Table:
        """What the strategy is told, but for the probabilities: those of no action."""
        prior = self.estimator.level_prior(state.params, context)
        if state.values is None:
            values = unknown_values(prior.shape)
        else:
            values = np.broadcast_to(state.values[:, None], prior.shape)
        levels = self.estimator.levels(state.params)[:, None]
        if levels.shape != prior.shape:
            levels = np.broadcast_to(levels, prior.shape)
        table = Table(no_probabilities(prior.shape), levels, prior, values)
        if state.pace is None:
            return table
        evidence = self.estimator.evidence(state.params, context)
        return table._replace(experience=state.pace.experience(evidence))

    def update(
        self, state: RewardConditionedState, feedback: Feedback, rng: np.random.Generator
    ) -> RewardConditionedState:
        """Fit the estimator to what came back."""
        params = self.estimator.fit(state.params, feedback, rng)
        informed = state.informed | (feedback.weight > 0).any(axis=1)
        pace = None if state.pace is None else state.pace.after(feedback)
        values = self._values(params)
        return self._ready(RewardConditionedState(state.problem, params, informed, values, pace))

    def record(
        self,
        state: RewardConditionedState,
        action: Actions | None = None,
        *,
        upcoming: int | None = None,
    ) -> RewardConditionedState:
        """Count decisions under way, if the strategy asks how many there are in a batch."""
        if state.pace is None:
            return state
        pace = state.pace if action is None else state.pace.taking(action.shape[1])
        if upcoming is None:
            return state._replace(pace=pace)
        whole_number("upcoming", upcoming, at_least=1)
        return self._ready(state._replace(pace=pace.expecting(upcoming), shared=None))

    def _ready(self, state: RewardConditionedState) -> RewardConditionedState:
        """With what all contexts share, where it takes long to find: no decision waits for it."""
        if state.pace is None or self.estimator.facts.uses_context:
            return state
        nowhere = np.zeros((len(state.informed), 1, state.problem.context_width))
        return state._replace(shared=self.find_chances(state, nowhere))

    def _values(self, params: Any) -> Floats | None:
        """Once for each refit, since they do not depend on the context."""
        return self.estimator.values(params) if self.strategy.needs_values else None


def check_levels(levels: int | None) -> None:
    """Refuse a number of levels that cannot be asked for."""
    if levels is not None:
        whole_number("levels", levels, at_least=2, at_most=MOST_QUANTILES)
