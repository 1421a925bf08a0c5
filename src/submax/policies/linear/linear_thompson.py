"""Thompson sampling with Bayesian linear regressions."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive, whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.models.regression.context_belief import ContextBelief
from submax.policies.linear.linear_beliefs import LinearBeliefs
from submax.policies.listed import drawn_one

SCORES_AT_ONCE = 2**21
"""About how many scores of draws and actions are held in memory, 16 MB; more contexts are processed
in parts."""


@dataclass(frozen=True)
class LinearThompson(ListingPolicy[LinearBeliefs]):
    """Draw each action's coefficients from their posterior and take the action with the best x·θ_a.

    θ_a ~ N(θ̂_a, width² Σ_a), where N(θ̂_a, Σ_a) is the posterior of the coefficients of a Bayesian
    regression of the reward on x = (1, z) over the rows of action a, and z is the standardized
    context. ``width`` is a multiple of the posterior's deviation: 1 is Thompson sampling, less
    explores less. The variance of the noise and the prior variances of intercepts and slopes are
    fitted by marginal likelihood, so that the units of rewards and contexts do not matter.

    Each update draws ``draws`` sets of coefficients. A decision picks one of them at random, so
    that π(a | x) is exactly the share of draws in which x·θ_a is the largest.

    Reference: Agrawal and Goyal (2013).

    *Departs from the paper:* every joint action has coefficients of its own instead of features of
    its own. The noise and the prior are fitted instead of given, and the prior mean of every action
    is the mean reward of a uniform choice. All decisions between two updates share the draws. The
    posterior is computed again when the number of rows has grown by 5 % or by 500. Until two
    rewards differ, the policy is uniform.
    """

    width: float = 1.0
    draws: int = 64

    def __post_init__(self) -> None:
        positive("width", self.width)
        whole_number("draws", self.draws, at_least=1, at_most=4096)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> LinearBeliefs:
        return LinearBeliefs.empty(problem, replicas, self.draws)

    def act(self, state: LinearBeliefs, context: Floats, rng: np.random.Generator) -> ChosenActions:
        if context.shape[:2] == (1, 1):
            return drawn_one(state.problem.space, self.probabilities(state, context)[0, 0], rng)
        return super().act(state, context, rng)

    def probabilities(self, state: LinearBeliefs, context: Floats) -> Floats:
        context = state.distinct_contexts(context)
        rows, size = context.shape[1], state.problem.space.size
        step = max(1, SCORES_AT_ONCE // (self.draws * size))
        found = np.full((len(context), rows, size), 1 / size)
        for replica, belief in enumerate(state.beliefs):
            if belief.feature_map is not None:
                for begin in range(0, rows, step):
                    part = slice(begin, begin + step)
                    found[replica, part] = _shares(belief, context[replica, part])
        return found

    def update(
        self, state: LinearBeliefs, feedback: Feedback, rng: np.random.Generator
    ) -> LinearBeliefs:
        return state.learned(feedback, self.draws, self.width, rng)


def _shares(belief: ContextBelief, context: Floats) -> Floats:
    """The share of draws in which each action is the best: ``[n, D] -> [n, K]``."""
    drawn = belief.drawn_contrasts(context)
    rows, draws, size = drawn.shape
    cell = drawn.argmax(axis=-1) + size * np.arange(rows)[:, None]
    shares: Floats = np.bincount(cell.ravel(), minlength=rows * size) / draws
    return shares.reshape(rows, size)
