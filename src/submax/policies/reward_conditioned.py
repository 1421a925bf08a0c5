"""The reward-conditioned policy: one estimator and one strategy."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats
from submax.core.checks import Allowed, instance_of, whole_number
from submax.core.conditioning import (
    LIMIT,
    Belief,
    EstimatedDensity,
    Estimator,
    SampleSizes,
    Strategy,
    Table,
    TabularBelief,
    WeightedStrategy,
    estimated_density,
    mixture_of_one,
    rejection,
    unknown_values,
    unseen,
)
from submax.core.errors import FallbackWarning, InputError, fall_back, standing_for
from submax.core.numerics import draw, draw_grouped, log_prob_of
from submax.core.policy import Policy, PolicyTraits, drawn_actions
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.rewards import MOST_QUANTILES
from submax.core.serialization import serializable
from submax.core.spaces import MAX_ENUMERATED_ACTIONS, Choices, Space
from submax.estimators.counting import Counting
from submax.policies.arm_statistics import by_rows
from submax.strategies.weighted import SubMax


def restricted_belief(belief: Belief, choices: Choices) -> Belief:
    """Return what a belief says if only the actions of some choices are eligible.

    With E the eligible actions and m_l = Σ_{a ∈ E} p(a | c, l), the probabilities become
    p(a | c, l) / m_l, the levels occur in proportion to p(l) m_l, and the belief is worth m_l times
    as many observations. Where m_l = 0, all eligible actions are equally likely.
    """
    kept = belief.space.indices_of(choices)
    table = belief.prob_of_all()[..., kept]
    mass = table.sum(axis=-1)
    listed = np.full(table.shape, 1 / len(kept))
    np.divide(table, mass[..., None], out=listed, where=mass[..., None] > 0)
    prior = belief.level_prior() * mass
    total = prior.sum(axis=-1, keepdims=True)
    prior = np.where(total > 0, prior / np.where(total > 0, total, 1.0), belief.level_prior())

    def weights() -> Floats | None:
        whole = belief.observation_weights()
        return None if whole is None else whole * mass

    space = belief.space.restricted(choices)
    return TabularBelief(space, belief.levels(), prior, listed, belief.values, weights)


@serializable("decision-counts")
class DecisionCounts(NamedTuple):
    """Counts for each replica, ``[R]``: rewards ``received``, decisions ``waiting``, ``batch``.

    ``batch`` estimates how many decisions will be made before the present ones can be learned from:
    the rows of the last feedback plus the decisions that still wait for a reward, or what the
    caller of ``Policy.record(state, upcoming=...)`` states.
    """

    received: Floats
    waiting: Floats
    batch: Floats

    @classmethod
    def none(cls, replicas: int) -> Self:
        return cls(np.zeros(replicas), np.zeros(replicas), np.ones(replicas))

    def after_feedback(self, feedback: Feedback) -> Self:
        """Return the counts after rewards came, also those of decisions that were not recorded."""
        back = np.count_nonzero(feedback.weight > 0, axis=1).astype(np.float64)
        waiting = np.maximum(self.waiting - back, 0.0)
        batch = np.where(back > 0, back + waiting, self.batch)
        return self._replace(received=self.received + back, waiting=waiting, batch=batch)

    def sample_sizes(self, observation_weight: Floats) -> SampleSizes:
        """Return what the strategy reads, for every row of ``observation_weight [R, n, L]``."""
        once = np.ones(observation_weight.shape[1])
        return SampleSizes(
            observation_weight, self.received[:, None] * once, self.batch[:, None] * once
        )


@serializable("reward-conditioned-state")
class RewardConditionedState(NamedTuple):
    """What the estimator has learned (``params``), and which replicas had feedback (``informed``).

    ``values [R, L]`` are `Belief.values`, and ``decision_counts`` says how many decisions are made
    for each feedback; both are None if the strategy does not need them. ``shared [R, 1, M]`` are
    the probabilities, if all contexts share them and computing them takes long. If only some
    choices are ``eligible``, the ``problem`` has these alone, and ``params`` know all of them.
    """

    problem: Problem
    params: Any
    informed: Booleans
    values: Floats | None
    decision_counts: DecisionCounts | None = None
    shared: Floats | None = None
    eligible: Choices | None = None


class ExhaustedWarning(FallbackWarning):
    """Rejection sampling found no action for some decisions, which were drawn uniformly instead."""


class ConditionedPolicy(Policy[RewardConditionedState]):
    """Learn by the ``estimator`` and decide by the ``strategy``; subclasses say how to draw.

    ``levels`` is the number of reward levels to condition on; None takes that of the problem's
    reward scale.
    """

    estimator: Estimator[Any]
    strategy: Strategy
    levels: int | None

    def __post_init__(self) -> None:
        super().__post_init__()
        instance_of("estimator", self.estimator, Estimator, "Counting()")
        instance_of("strategy", self.strategy, Strategy, "SubMax()")
        if self.levels is not None:
            whole_number("levels", self.levels, at_least=2, at_most=MOST_QUANTILES)

    @property
    def traits(self) -> PolicyTraits:
        # Importance-sampled values of the levels need propensities.
        needs_propensities = self.strategy.traits.needs_values
        return replace(self.estimator.traits, needs_propensities=needs_propensities)

    @property
    def grouped_draws(self) -> bool:
        """Whether decisions of one batch are drawn in groups, see ``draw_grouped``."""
        return self.strategy.traits.grouped_draws and not self.estimator.traits.uses_context

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> RewardConditionedState:
        if self.levels is not None:
            problem = replace(problem, scale=problem.scale.with_levels(self.levels))
        self.strategy.check_levels(problem.scale.levels)
        self.check_space(problem.space)
        params, counts = self.estimator.init(problem, replicas, rng), None
        if self.strategy.traits.needs_sample_sizes:
            belief = self.estimator.belief(params, _one_context(problem, replicas))
            self.checked(belief.observation_weights(), "to know how many observations it is worth")
            counts = DecisionCounts.none(replicas)
        values = self._values(problem, replicas, params)
        informed = np.zeros(replicas, dtype=bool)
        return RewardConditionedState(problem, params, informed, values, counts)

    @abstractmethod
    def check_space(self, space: Space) -> None:
        """Raise an InputError if the policy cannot draw actions from this space."""

    @abstractmethod
    def compute_probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        """Return the probabilities that decisions are drawn from: ``[R, n, D] -> [R, n, ...]``."""

    def probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        """Return ``compute_probabilities``, from the state if they are stored there.

        Without context all rows share one policy, ``[R, 1, ...]``.
        """
        if state.problem.context_width == 0:
            context = context[:, :1]
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
                f"the state has {len(state.informed)} replicas, but context has {len(context)}"
            )

    def expected_rewards(self, state: RewardConditionedState, context: Floats) -> Floats | None:
        if not state.problem.space.is_listable:
            return None
        return self.belief(state, context).expected_rewards()

    def belief(self, state: RewardConditionedState, context: Floats) -> Belief:
        """Return what the estimator believes about the eligible actions."""
        belief = self.estimator.belief(state.params, context)
        return belief if state.eligible is None else restricted_belief(belief, state.eligible)

    def restricted(
        self, state: RewardConditionedState, choices: Choices
    ) -> RewardConditionedState | None:
        if not state.problem.space.is_listable:
            return None
        problem = state.problem.restricted(choices)
        return self._with_shared(state._replace(problem=problem, shared=None, eligible=choices))

    def table(self, state: RewardConditionedState, belief: Belief) -> Table:
        """Return the strategy's table, without the probabilities."""
        prior, levels = belief.level_prior(), belief.levels()[:, None]
        values = unknown_values(prior.shape)
        if state.values is not None:
            values = np.broadcast_to(state.values[:, None], prior.shape)
        if levels.shape != prior.shape:
            levels = np.broadcast_to(levels, prior.shape)
        table = Table(unknown_values((*prior.shape, 0)), levels, prior, values)
        if state.decision_counts is None:
            return table
        weights = belief.observation_weights()
        assert weights is not None, "init has checked it"
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
            counts = counts._replace(waiting=counts.waiting + action.shape[1])
        if upcoming is None:
            return state._replace(decision_counts=counts)
        whole_number("upcoming", upcoming, at_least=1)
        counts = counts._replace(batch=np.full_like(counts.batch, upcoming))
        return self._with_shared(state._replace(decision_counts=counts, shared=None))

    def _with_shared(self, state: RewardConditionedState) -> RewardConditionedState:
        """Store the probabilities that all contexts share, so no decision computes them."""
        if state.decision_counts is None or self.estimator.traits.uses_context:
            return state
        context = _one_context(state.problem, len(state.informed))
        return state._replace(shared=self.compute_probabilities(state, context))

    def _values(self, problem: Problem, replicas: int, params: Any) -> Floats | None:
        """Return the values of the levels if the strategy needs them, once for each update."""
        if not self.strategy.traits.needs_values:
            return None
        values = self.estimator.belief(params, _one_context(problem, replicas)).values()
        return self.checked(values, "the importance-sampled reward of each level")

    def checked(self, found: Floats | None, what: str) -> Floats:
        """Return what the strategy needs of a belief, or raise an InputError if there is none."""
        if found is None:
            raise InputError(
                f"the {type(self.strategy).__name__} strategy needs {what}, which the "
                f"{type(self.estimator).__name__} estimator does not provide: use another "
                "strategy, such as submax"
            )
        return found


def _one_context(problem: Problem, replicas: int) -> Floats:
    """Return one context in each replica, for questions whose answer is the same in all."""
    return np.zeros((replicas, 1, problem.context_width))


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
    the first feedback the policy is uniform. Up to ``max_enumerated_actions`` joint actions are
    listed; if there are more, decisions are drawn by rejection, at a cost that does not depend on
    the number of actions. A strategy that needs the probability of every action always lists them.
    ``levels`` is the number of reward levels to condition on; None takes that of the problem's
    reward scale. `SlotBySlot` chooses the slots of a joint action one by one.

    Reference: Xu et al. (2024), equation gm-inference.
    """

    estimator: Estimator[Any] = field(default_factory=Counting)
    strategy: Strategy = field(default_factory=SubMax)
    max_enumerated_actions: Annotated[
        int, Allowed(whole_number, at_least=1, at_most=MAX_ENUMERATED_ACTIONS)
    ] = 4096
    levels: int | None = None

    def check_space(self, space: Space) -> None:
        if self.strategy.traits.needs_listing:
            instead = (
                "use grid-linear-thompson, or submax, advantage, clipped or target with the CVAE, "
                "as rcp-cvae-submax"
            )
            space.check_listable(f"the {type(self.strategy).__name__} strategy", instead)

    def act(
        self, state: RewardConditionedState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        self.check_rows(state, context)
        space = state.problem.space
        few = not space.reals and space.size <= self.max_enumerated_actions
        if not (few or self.strategy.traits.needs_listing):
            rows = max(1, REJECTED_ROWS // len(context))
            rejected = by_rows(lambda part: self._rejected(state, part, rng), rows, context)
            return ChosenActions(rejected, None)
        if state.problem.context_width == 0 or self.grouped_draws:
            with standing_for(context.shape[1]):
                shared = self.probabilities(state, context[:, :1])
            how = draw_grouped if self.grouped_draws else draw
            return drawn_actions(space, shared, context.shape[1], rng, how)
        return by_rows(
            lambda part: drawn_actions(space, self.probabilities(state, part), part.shape[1], rng),
            self._rows_per_part(state, context),
            context,
        )

    def log_prob(self, state: RewardConditionedState, context: Floats, action: Actions) -> Floats:
        self.check_rows(state, context)
        state.problem.check_action(action)
        if not state.problem.space.is_listable:
            return self.density(state, context, action).log_prob
        index = state.problem.space.index(action)
        if state.problem.context_width == 0:
            return log_prob_of(self.probabilities(state, context), index)
        return by_rows(
            lambda part, indices: log_prob_of(self.probabilities(state, part), indices),
            self._rows_per_part(state, context),
            context,
            index,
        )

    def density(
        self, state: RewardConditionedState, context: Floats, action: Actions
    ) -> EstimatedDensity:
        """Return the log-probability or log-density of actions that are not listed.

        The normalizing constant is estimated by sampling; ``error`` is the standard error of the
        logarithm. The density is uniform, and not known, where decisions are.
        """
        if state.problem.context_width == 0:
            # Without context all rows have the same normalizing constant.
            result = self._estimated(state, np.zeros((len(context), 1, 0)), action[:, None])
            log_prob = result.log_prob[:, 0]
            error = np.broadcast_to(result.error, log_prob.shape)
            return EstimatedDensity(log_prob, error, np.broadcast_to(result.known, log_prob.shape))
        rows = max(1, ESTIMATED_ROWS // len(context))
        found = by_rows(
            lambda *part: self._estimated(state, *part), rows, context, action[:, :, None]
        )
        return found._replace(log_prob=found.log_prob[..., 0])

    def compute_probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        strategy, belief = self.strategy, self.belief(state, context)
        table = self.table(state, belief)
        alone = context.shape[:2] == (1, 1) and not strategy.traits.needs_listing
        if alone and isinstance(strategy, WeightedStrategy):
            # A single decision takes fewer calls of numpy, which would dominate its latency.
            weights = strategy.weights(table)
            forget = not table.prior.all() and bool(unseen(table, weights).any())
            return mixture_of_one(belief.prob_of_all()[0, 0], weights[0, 0], forget)[None, None]
        return strategy.probabilities(table._replace(probabilities=belief.prob_of_all()))

    def _rows_per_part(self, state: RewardConditionedState, context: Floats) -> int:
        size = len(context) * state.problem.scale.levels * state.problem.space.size
        return max(1, LISTED_NUMBERS // size)

    def _rejected(
        self, state: RewardConditionedState, context: Floats, rng: np.random.Generator
    ) -> Actions:
        """Draw by rejection, and uniformly where there is too little data.

        A draw is also uniform if no level has a positive weight, and if none of ``LIMIT`` proposals
        is accepted; the latter is counted as a fallback.
        """
        belief, space = self.belief(state, context), state.problem.space
        weights, forget = self._weights(state, belief)
        forget = forget | ~(weights > 0).any(axis=-1)
        if forget.any():
            # These draws are not used: with weight on one level, the first proposal is accepted.
            any_level = np.arange(weights.shape[-1]) == weights.shape[-1] - 1
            weights = np.where(forget[..., None], any_level, weights)
        action, exhausted = rejection(weights, belief, rng)
        if exhausted.any():
            count = int(exhausted.sum())
            message = (
                f"{count} of {exhausted.size} decisions were drawn uniformly, because rejection "
                f"sampling accepted none of {LIMIT} proposals: the levels hardly differ"
            )
            fall_back(ExhaustedWarning, message, count)
            forget |= exhausted
        if forget.any():
            action = np.where(forget[..., None], space.uniform(action.shape[:2], rng), action)
        return action

    def _estimated(
        self, state: RewardConditionedState, context: Floats, action: Actions
    ) -> EstimatedDensity:
        """Return the log-density of ``action [R, n, M, S]``; see ``density``."""
        belief = self.belief(state, context)
        weights, forget = self._weights(state, belief)
        log_prob, error, known = estimated_density(weights, belief, action)
        known = known & ~forget
        uniform = -state.problem.space.log_measure
        log_prob = np.where(known[..., None], log_prob, uniform)
        return EstimatedDensity(log_prob, np.where(known, error, 0.0), known)

    def _weights(self, state: RewardConditionedState, belief: Belief) -> tuple[Floats, Booleans]:
        """Return the weights ``[R, n, L]``, and which rows have too little data, ``[R, n]``."""
        assert isinstance(self.strategy, WeightedStrategy), "other strategies list the actions"
        table = self.table(state, belief)
        weights = self.strategy.weights(table)
        return weights, ~state.informed[:, None] | unseen(table, weights)
