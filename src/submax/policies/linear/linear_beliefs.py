"""What a linear policy believes about the rewards of every joint action."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.running.stored import stored
from submax.regression.belief_settings import BeliefSettings
from submax.regression.context_belief import ContextBelief
from submax.regression.sampled_rows import RegressionRows

MOST_NUMBERS = 2**28
"""Numbers in the sums and draws of all replicas and joint actions: 2 GB."""
SCALING_ROWS = 500
"""The mean and the deviation of each number of the context are those of the first 500 rows."""


@stored("linear-beliefs")
class LinearBeliefs(NamedTuple):
    """A Bayesian linear regression of the reward for every joint action, in each replica.

    r = θ_a · (1, z) + noise, with the standardized context z. Regressions of different actions
    share no coefficients, but the prior variances of the constants and of the slopes and the noise,
    which are fitted by marginal likelihood.
    """

    problem: Problem
    beliefs: tuple[ContextBelief, ...]

    @classmethod
    def empty(cls, problem: Problem, replicas: int, draws: int) -> Self:
        """No feedback, if beliefs with so many ``draws`` are not too large."""
        problem.space.check_listable("a linear policy")
        width = 1 + problem.context_width
        numbers = replicas * problem.space.size * width * (width + draws)
        if numbers > MOST_NUMBERS:
            raise InputError(
                f"a linear policy keeps (1 + context_width)² numbers and {draws} draws of "
                f"1 + context_width numbers for every replica and joint action, at most "
                f"{MOST_NUMBERS}, and here these are {numbers}: take fewer replicas"
            )
        return cls(problem, (ContextBelief.unlearned(problem.context_width),) * replicas)

    def settings(self, draws: int, width: float) -> BeliefSettings:
        """How the beliefs are learned, with so many ``draws`` of this ``width``."""
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
        """The beliefs after feedback."""
        feedback.check(self.problem)
        settings = self.settings(draws, width)
        # Each replica has a stream of its own, so that none depends on the rows of another.
        beliefs = []
        streams = rng.spawn(len(self.beliefs))
        for replica, (belief, stream) in enumerate(zip(self.beliefs, streams, strict=True)):
            rows = RegressionRows.of(feedback, replica, self.problem)
            beliefs.append(belief.learned(rows, settings, stream) if len(rows.reward) else belief)
        return self._replace(beliefs=tuple(beliefs))

    def different(self, context: Floats) -> Floats:
        """The contexts, or one of each replica if they have no numbers and are all the same."""
        self.problem.check_context(context)
        return context if context.shape[2] else context[:, :1]
