"""SubMax on posterior draws of the expected rewards."""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.estimators.bayesian_features import BayesianFeatures, FeatureParams
from submax.policies.listed import drawn_one
from submax.strategies.iterated import mean_submax_of

MOST_CONTRASTS = 2**21
"""About this many contrasts of actions are held in memory at a time: 16 MB."""


@stored("posterior-state")
class PosteriorState(NamedTuple):
    """What the estimator has learned."""

    problem: Problem
    params: FeatureParams

    def restricted(self, choices: Choices) -> Self:
        """Return the state with the joint actions of these choices alone."""
        params = self.params.restricted(choices)
        return self._replace(problem=params.problem, params=params)


@dataclass(frozen=True)
class PosteriorSubMax(ListingPolicy[PosteriorState]):
    """Apply SubMax to each kept posterior draw of the expected rewards, and average the policies.

    Each draw v of the expected reward of every action gives a policy: from the uniform one,
    π_{k+1}(a) ∝ π_k(a) max(v(a) − Σ_b π_k(b) v(b), 0), ``depth`` times. A decision uses one of the
    draws that the ``estimator`` keeps, at random, so that its probability is the mean of these
    policies, which is exact. Between two updates all decisions share the draws. Before the first
    update the policy is uniform.

    Not in the paper, whose SubMax it applies to draws; see docs/research.
    """

    estimator: BayesianFeatures = field(default_factory=BayesianFeatures)
    depth: int = 2

    @property
    def facts(self) -> Facts:
        return self.estimator.facts

    def __post_init__(self) -> None:
        whole_number("depth", self.depth, at_least=1, at_most=100)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> PosteriorState:
        return PosteriorState(problem, self.estimator.init(problem, replicas, rng))

    def act(
        self, state: PosteriorState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        if context.shape[:2] == (1, 1):
            state.problem.check_context(context)
            return drawn_one(state.problem.space, self._alone(state, context), rng)
        return super().act(state, context, rng)

    def probabilities(self, state: PosteriorState, context: Floats) -> Floats:
        state.problem.check_context(context)
        if state.problem.context_width == 0:
            # Without context all decisions of a replica have the same probabilities.
            context = context[:, :1]
        if context.shape[:2] == (1, 1):
            return self._alone(state, context)[None, None]
        replicas, rows, _ = context.shape
        size = state.problem.space.size
        step = max(1, MOST_CONTRASTS // (self.estimator.draws * size))
        found = np.full((replicas, rows, size), 1 / size)
        for replica, belief in enumerate(state.params.beliefs):
            if belief.feature_map is None:
                continue
            for begin in range(0, rows, step):
                part = slice(begin, begin + step)
                contrasts = belief.drawn_contrasts(context[replica, part])
                found[replica, part] = mean_submax_of(contrasts, self.depth)
        return found

    def expected_rewards(self, state: PosteriorState, context: Floats) -> Floats:
        state.problem.check_context(context)
        return self.estimator.belief(state.params, context).expected_rewards()

    def update(
        self, state: PosteriorState, feedback: Feedback, rng: np.random.Generator
    ) -> PosteriorState:
        return state._replace(params=self.estimator.fit(state.params, feedback, rng))

    def _alone(self, state: PosteriorState, context: Floats) -> Floats:
        """Return the probabilities in a single context of a single replica, fast: ``[K]``."""
        belief = state.params.beliefs[0]
        if belief.feature_map is None:
            size = state.problem.space.size
            return np.full(size, 1 / size)
        return mean_submax_of(belief.drawn_contrasts_alone(context[0, 0]), self.depth)
