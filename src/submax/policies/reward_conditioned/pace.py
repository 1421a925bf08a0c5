"""How many decisions are taken between rewards."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.conditioning.table import Experience
from submax.core.contracts.feedback import Feedback
from submax.core.running.stored import stored


@stored("pace")
class Pace(NamedTuple):
    """Counts by replica, ``[R]``: rewards ``received``, decisions ``waiting``, and the ``batch``.

    The batch is how many decisions will be taken before what is taken now can be learned from:
    as many as came back last, and as many as are still under way. A reward that never comes is
    waited for without end; whoever knows better says so by ``Policy.record``, as a live bandit
    does.
    """

    received: Floats
    waiting: Floats
    batch: Floats

    @classmethod
    def unknown(cls, replicas: int) -> Self:
        """Nothing was decided yet."""
        return cls(np.zeros(replicas), np.zeros(replicas), np.ones(replicas))

    def taking(self, decisions: int) -> Self:
        """After so many decisions."""
        return self._replace(waiting=self.waiting + decisions)

    def expecting(self, decisions: int) -> Self:
        """Where someone knows the batch."""
        return self._replace(batch=np.full_like(self.batch, decisions))

    def after(self, feedback: Feedback) -> Self:
        """After rewards came back; those of decisions no one recorded are counted as well."""
        back = np.count_nonzero(feedback.weight > 0, axis=1).astype(np.float64)
        waiting = np.maximum(self.waiting - back, 0.0)
        batch = np.where(back > 0, back + waiting, self.batch)
        return self._replace(received=self.received + back, waiting=waiting, batch=batch)

    def experience(self, evidence: Floats) -> Experience:
        """The same in every row, beside the ``evidence [R, n, L]``."""
        once = np.ones(evidence.shape[1])
        return Experience(evidence, self.received[:, None] * once, self.batch[:, None] * once)
