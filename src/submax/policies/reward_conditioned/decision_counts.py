"""How many decisions are made for each feedback."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning.table import SampleSizes
from submax.core.contracts.feedback import Feedback
from submax.core.running.stored import stored


@stored("decision-counts")
class DecisionCounts(NamedTuple):
    """Counts for each replica, ``[R]``: rewards ``received``, decisions ``waiting``, ``batch``.

    ``batch`` estimates how many decisions will be made before the present ones can be learned from:
    the rows of the last feedback plus the decisions that still wait for a reward. A decision whose
    reward never comes waits forever, unless a caller that knows the size of the batch, such as a
    live bandit, states it by ``Policy.record(state, upcoming=...)``.
    """

    received: Floats
    waiting: Floats
    batch: Floats

    @classmethod
    def none(cls, replicas: int) -> Self:
        """Return the counts before the first decision."""
        return cls(np.zeros(replicas), np.zeros(replicas), np.ones(replicas))

    def after_decisions(self, decisions: int) -> Self:
        """Return the counts after this many more decisions in every replica."""
        return self._replace(waiting=self.waiting + decisions)

    def with_batch(self, decisions: int) -> Self:
        """Return the counts with a batch of the size that a caller has stated."""
        return self._replace(batch=np.full_like(self.batch, decisions))

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
