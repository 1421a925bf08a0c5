"""The reward-conditioned policy: one estimator and one strategy."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.estimator import Estimator
from submax.core.feedback import Feedback
from submax.core.listing_policy import ListingPolicy
from submax.core.problem import Problem
from submax.core.strategy import Strategy
from submax.core.table import Table
from submax.estimators.counting import Counting
from submax.strategies.clipped import Clipped
from submax.strategies.iterated import Iterated
from submax.strategies.optimistic import Optimistic
from submax.strategies.optimized import Optimized
from submax.strategies.submax import SubMax
from submax.strategies.target import Target


class RewardConditionedState(NamedTuple):
    """The estimator's belief."""

    problem: Problem
    params: Any


@dataclass(frozen=True)
class RewardConditioned(ListingPolicy[RewardConditionedState]):
    """Learn π(a | c, r), then marginalize over r with weights that may be negative.

    π‡(a | c) = Σ_l w_l π(a | c, r_l): the ``estimator`` gives π, the ``strategy`` gives w. Before
    the first data every strategy is uniform.

    Reference: Xu et al. (2024), equation gm-inference.
    """

    estimator: Estimator[Any] = field(default_factory=Counting)
    strategy: Strategy = field(default_factory=SubMax)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> RewardConditionedState:
        """The estimator's belief before any data."""
        problem.space.check_listable("the reward-conditioned policy")
        return RewardConditionedState(problem, self.estimator.init(problem, replicas, rng))

    def probabilities(self, state: RewardConditionedState, context: Floats) -> Floats:
        """Ask the estimator about every action, then the strategy; one row without context."""
        if state.problem.context_width == 0:
            context = context[:, :1]
        return self.strategy.probabilities(self.table(state, context))

    def table(self, state: RewardConditionedState, context: Floats) -> Table:
        """The conditioned probabilities of every joint action, ``[R, n, L, M]``."""
        prior = self.estimator.level_prior(state.params, context)
        values = np.full(prior.shape, np.nan)
        if self.strategy.needs_values:
            values[:] = self.estimator.values(state.params)[:, None, :]
        return Table(
            probabilities=self.estimator.prob_of_all(state.params, context, state.problem.space),
            levels=np.array(state.problem.levels),
            prior=prior,
            values=values,
        )

    def update(
        self, state: RewardConditionedState, feedback: Feedback, rng: np.random.Generator
    ) -> RewardConditionedState:
        """Fit the estimator to what came back."""
        return state._replace(params=self.estimator.fit(state.params, feedback, rng))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Every preset, and strategies that have none."""
        yield from cls.presets().values()
        yield cls(Counting(0.1), Clipped(4.0))
        yield cls(Counting(1.0), Target((0.3, 0.7)))

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """Add-one counting with the strategies of the paper, and two iterations of SubMax."""
        strategies = {
            "rcp-optimistic": Optimistic(),
            "rcp-optimized": Optimized(),
            "rcp-submax": SubMax(),
            "rcp-iterated-2": Iterated(2),
        }
        return {name: cls(Counting(1.0), strategy) for name, strategy in strategies.items()}
