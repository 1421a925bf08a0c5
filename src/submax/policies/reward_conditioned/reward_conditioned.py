"""The reward-conditioned policy: one estimator and one strategy."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats
from submax.core.checks import whole_number
from submax.core.conditioning.belief import Belief
from submax.core.conditioning.estimated_density import EstimatedDensity
from submax.core.conditioning.estimator import Estimator
from submax.core.conditioning.marginalization import mixture_of_one, unseen
from submax.core.conditioning.strategy import Strategy
from submax.core.conditioning.table import Table
from submax.core.conditioning.weighted_strategy import WeightedStrategy
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper
from submax.core.errors import InputError
from submax.core.numerics.categorical import draw, draw_grouped, log_prob_of
from submax.core.running.fallback import standing_for
from submax.core.spaces.space import LISTING_LIMIT, Space
from submax.estimators.counting import Counting
from submax.policies.listed import drawn_listed, drawn_one, joined, split
from submax.policies.reward_conditioned.conditioned_policy import (
    ConditionedPolicy,
    check_parts,
)
from submax.policies.reward_conditioned.reward_conditioned_state import RewardConditionedState
from submax.policies.reward_conditioned.unlisted import density, drawn
from submax.policies.steppers.submax_stepper import SubMaxStepper
from submax.strategies.submax import SubMax

LISTED_NUMBERS = 2**21
"""About this many probabilities are held in memory at a time: 16 MB."""
REJECTED_ROWS = 2560
"""Rows of all replicas that are drawn by rejection at a time, to bound memory."""
ESTIMATED_ROWS = 64
"""Rows of all replicas whose normalizing constant is estimated at a time, to bound memory."""


@dataclass(frozen=True)
class RewardConditioned(ConditionedPolicy):
    """Learn π(a | c, r), then marginalize over r with weights that may be negative.

    π‡(a | c) = Σ_l w_l π(a | c, r_l): the ``estimator`` gives π, the ``strategy`` gives w. Before
    the first feedback the policy is uniform. Up to ``listing_limit`` joint actions are listed; if
    there are more, decisions are drawn by rejection, at a cost that does not depend on the number
    of actions. A strategy that needs the probability of every action always lists them.
    ``levels`` is the number of reward levels to condition on; None takes that of the problem's
    reward scale. `SlotBySlot` chooses the slots of a joint action one by one.

    Reference: Xu et al. (2024), equation gm-inference.
    """

    estimator: Estimator[Any] = field(default_factory=Counting)
    strategy: Strategy = field(default_factory=SubMax)
    listing_limit: int = 4096
    levels: int | None = None

    def __post_init__(self) -> None:
        whole_number("listing_limit", self.listing_limit, at_least=1, at_most=LISTING_LIMIT)
        check_parts(self.estimator, self.strategy, self.levels)

    def check_space(self, space: Space) -> None:
        """Refuse spaces without a list of actions if the strategy needs one."""
        if not self.strategy.facts.needs_listing:
            return
        who = f"the {type(self.strategy).__name__} strategy"
        if space.reals:
            raise InputError(
                f"{who} needs the probability of every action, and the actions of {space} cannot "
                "be listed: take the strategy submax, advantage, clipped or target with the CVAE, "
                "such as the policy rcp-cvae-submax"
            )
        space.check_listable(who, "take rcp-cvae-submax or rcp-cvae-submax-by-slot")

    def act(
        self, state: RewardConditionedState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        self.check_rows(state, context)
        space = state.problem.space
        if not self._lists(state.problem):
            rows = max(1, REJECTED_ROWS // len(context))
            parts = [self._rejected(state, part, rng) for part in split(context, rows)]
            return ChosenActions(joined(parts), None)
        if context.shape[:2] == (1, 1):
            return drawn_one(space, self.probabilities(state, context)[0, 0], rng)
        if state.problem.context_width == 0 or self.grouped_draws:
            with standing_for(context.shape[1]):
                shared = self.probabilities(state, context[:, :1])
            how = draw_grouped if self.grouped_draws else draw
            return drawn_listed(space, shared, context.shape[1], rng, how)
        listed = [
            drawn_listed(space, self.probabilities(state, part), part.shape[1], rng)
            for part in split(context, self._rows_per_part(state, context))
        ]
        return ChosenActions(*map(joined, zip(*listed, strict=True)))

    def log_prob(self, state: RewardConditionedState, context: Floats, action: Actions) -> Floats:
        self.check_rows(state, context)
        state.problem.check_action(action)
        if state.problem.space.reals or state.problem.space.size > LISTING_LIMIT:
            return self.density(state, context, action).log_prob
        index = state.problem.space.index(action)
        if state.problem.context_width == 0:
            return log_prob_of(self.probabilities(state, context[:, :1]), index)
        rows = self._rows_per_part(state, context)
        pairs = zip(split(context, rows), split(index, rows), strict=True)
        found: Floats = joined(
            [log_prob_of(self.probabilities(state, part), indices) for part, indices in pairs]
        )
        return found

    def density(
        self, state: RewardConditionedState, context: Floats, action: Actions
    ) -> EstimatedDensity:
        """Return the log-probability or log-density of actions that are not listed.

        The normalizing constant is estimated by sampling; ``error`` is the standard error of the
        logarithm.
        """
        if state.problem.context_width == 0:
            # Without context all rows have the same normalizing constant.
            found = self._estimated(state, np.zeros((len(context), 1, 0)), action[:, None])
            log_prob = found.log_prob[:, 0]
            error = np.broadcast_to(found.error, log_prob.shape)
            return EstimatedDensity(log_prob, error, np.broadcast_to(found.known, log_prob.shape))
        rows = max(1, ESTIMATED_ROWS // len(context))
        pairs = zip(split(context, rows), split(action[:, :, None], rows), strict=True)
        parts = [self._estimated(state, *pair) for pair in pairs]
        log_prob, error, known = map(joined, zip(*parts, strict=True))
        return EstimatedDensity(log_prob[..., 0], error, known)

    def probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        """Probability of every joint action in each context: ``[R, n, D] -> [R, n, M]``.

        Without context all rows share one policy, ``[R, 1, M]``.
        """
        shared = state.problem.context_width == 0
        return self.cached_probabilities(state, context[:, :1] if shared else context)

    def compute_probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        strategy, belief = self.strategy, self.belief(state, context)
        table = self.table(state, belief)
        alone = context.shape[:2] == (1, 1) and not strategy.facts.needs_listing
        if alone and isinstance(strategy, WeightedStrategy):
            return _mixture_of_one(strategy.weights(table), table, belief)[None, None]
        return strategy.probabilities(table._replace(probabilities=belief.prob_of_all()))

    def stepper(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Stepper | None:
        """Return the stepper of counts with SubMax; other parts have none."""
        estimator = self.estimator
        counts = isinstance(estimator, Counting) and not estimator.facts.forgets
        if not counts or problem.scale.moves:
            return None
        problem = self.init(problem, replicas, rng).problem
        fitted = estimator.smoothing == "fitted"  # type: ignore[attr-defined]  # it counts
        if not isinstance(self.strategy, SubMax) or fitted or not self._lists(problem):
            return None
        return SubMaxStepper(problem, replicas, estimator.smoothing)  # type: ignore[attr-defined]

    def _lists(self, problem: Problem) -> bool:
        if problem.space.reals:
            return False
        needs_listing = self.strategy.facts.needs_listing
        return needs_listing or problem.space.size <= self.listing_limit

    def _rows_per_part(self, state: RewardConditionedState, context: Floats) -> int:
        """Return how many rows are listed at a time."""
        size = len(context) * state.problem.scale.levels * state.problem.space.size
        return max(1, LISTED_NUMBERS // size)

    def _rejected(
        self, state: RewardConditionedState, context: Floats, rng: np.random.Generator
    ) -> Actions:
        belief = self.belief(state, context)
        weights, forget = self._weights(state, belief)
        return drawn(state.problem.space, weights, forget, belief, rng)

    def _estimated(
        self, state: RewardConditionedState, context: Floats, action: Actions
    ) -> EstimatedDensity:
        belief = self.belief(state, context)
        weights, forget = self._weights(state, belief)
        return density(state.problem.space, weights, forget, belief, action)

    def _weights(self, state: RewardConditionedState, belief: Belief) -> tuple[Floats, Booleans]:
        """Return the weights ``[R, n, L]``, and which rows have too little data, ``[R, n]``."""
        assert isinstance(self.strategy, WeightedStrategy), "other strategies list the actions"
        table = self.table(state, belief)
        weights = self.strategy.weights(table)
        return weights, ~state.informed[:, None] | unseen(table, weights)


def _mixture_of_one(weights: Floats, table: Table, belief: Belief) -> Floats:
    """Return the probabilities ``[M]`` of a single decision, by few calls of numpy."""
    forget = not table.prior.all() and bool(unseen(table, weights).any())
    return mixture_of_one(belief.prob_of_all()[0, 0], weights[0, 0], forget)
