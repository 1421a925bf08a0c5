"""What came back."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.errors import InvalidValue
from submax.core.problem import Problem


class Feedback(NamedTuple):
    """Decisions with their rewards; every array begins ``[R, n]``.

    ``log_prob`` is the log-probability with which each action was chosen, or None where the
    logging policy did not say. ``weight`` 0 marks a row that is not there (padding, or a reward
    that has not arrived): such a row changes nothing, whatever else it holds.
    """

    context: Floats
    action: Actions
    reward: Floats
    log_prob: Floats | None
    weight: Floats

    def check(self, problem: Problem) -> None:
        """Refuse shapes, actions and rewards that do not fit the problem."""
        shape = self.reward.shape
        expected = {
            "context": (self.context.shape, (*shape, problem.context_width)),
            "action": (self.action.shape, (*shape, problem.space.slots)),
            "weight": (self.weight.shape, shape),
        }
        if self.log_prob is not None:
            expected["log_prob"] = (self.log_prob.shape, shape)
        for name, (got, wanted) in expected.items():
            if got != wanted:
                raise InvalidValue(f"{name} has shape {got}, but this problem needs {wanted}")
        there = self.weight > 0
        if not np.all(np.isfinite(self.weight) & (self.weight >= 0)):
            raise InvalidValue("weight must be finite and 0 or more, and some of it is not")
        if not problem.space.contains(self.action[there]):
            raise InvalidValue(f"an action does not belong to the space {problem.space}")
        numbers = {"reward": self.reward, "context": self.context, "log_prob": self.log_prob}
        for name, values in numbers.items():
            if values is not None and not np.all(np.isfinite(values[there])):
                raise InvalidValue(f"{name} must be finite, and some of it is not")
        problem.scale.check(self.reward[there])
