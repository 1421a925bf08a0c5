"""Bayesian linear regressions of the reward, one for every joint action."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.models.regression.context_belief import ContextBelief
from submax.models.regression.map_choice import BeliefSettings
from submax.models.regression.sampled_rows import RegressionRows

MOST_NUMBERS = 2**28
"""The most numbers in the sums and draws of all replicas and joint actions: 2 GB of float64."""
SCALING_ROWS = 500
"""The number of first rows from which the means and deviations that standardize contexts come."""


@stored("linear-beliefs")
class LinearBeliefs(NamedTuple):
    """A Bayesian linear regression of the reward for every joint action, in each replica.

    r = θ_a · (1, z) + noise, where z is the standardized context. Every action has coefficients
    θ_a of its own. All actions share the prior variance of the intercepts, the prior variance of
    the slopes and the variance of the noise, which are fitted by marginal likelihood.
    """

    problem: Problem
    beliefs: tuple[ContextBelief, ...]

    @classmethod
    def empty(cls, problem: Problem, replicas: int, draws: int) -> Self:
        """The beliefs before any feedback; refused if they would need too much memory."""
        problem.space.check_listable("a linear policy")
        features = 1 + problem.context_width
        numbers = replicas * problem.space.size * features * (features + draws)
        if numbers > MOST_NUMBERS:
            raise InputError(
                f"a linear policy stores (1 + context_width)² numbers and {draws} draws of "
                f"1 + context_width numbers for every replica and joint action, {numbers} numbers "
                f"in all, and at most {MOST_NUMBERS} are allowed: take fewer replicas"
            )
        return cls(problem, (ContextBelief.unlearned(problem.context_width),) * replicas)

    def restricted(self, choices: Choices) -> Self:
        """Return the beliefs about the joint actions of these choices alone."""
        kept = self.problem.space.indices_of(choices)
        return self._replace(
            problem=self.problem.restricted(choices),
            beliefs=tuple(belief.restricted(kept) for belief in self.beliefs),
        )

    def settings(self, draws: int, width: float) -> BeliefSettings:
        """The settings of every belief, with ``draws`` posterior draws of relative ``width``."""
        return BeliefSettings(
            actions=self.problem.space.size,
            features=1 + self.problem.context_width,
            rows=SCALING_ROWS,
            draws=draws,
            width=width,
            discount=1.0,
            kernels=False,
            shared=False,
        )

    def learned(
        self, feedback: Feedback, draws: int, width: float, rng: np.random.Generator
    ) -> Self:
        """The beliefs after more feedback."""
        feedback.check(self.problem)
        settings = self.settings(draws, width)
        # Each replica has a random stream of its own, so that it does not depend on other replicas.
        beliefs = []
        streams = rng.spawn(len(self.beliefs))
        for replica, (belief, stream) in enumerate(zip(self.beliefs, streams, strict=True)):
            rows = RegressionRows.of(feedback, replica, self.problem)
            beliefs.append(belief.learned(rows, settings, stream) if len(rows.reward) else belief)
        return self._replace(beliefs=tuple(beliefs))

    def distinct_contexts(self, context: Floats) -> Floats:
        """Return the contexts; only one for each replica if contexts have no variables."""
        self.problem.check_context(context)
        return context if context.shape[2] else context[:, :1]
