"""Decisions with their rewards, from which policies learn."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.running.stored import stored

PROBABILITY_TOLERANCE = 1e-6
"""Probabilities up to 1 + this, and log-probabilities up to this, count as 1 and 0: rounding."""


@stored("feedback")
class Feedback(NamedTuple):
    """Decisions with their rewards; every array begins ``[R, n]``.

    ``log_prob`` is the log-probability with which each action was chosen, or None if it was not
    logged. ``slot_reward [R, n, S]`` are the rewards of each slot, NaN if one is unknown; None if
    there is only the reward of the whole action. A row with ``weight`` 0 is absent (padding, or a
    reward that has not arrived): it changes nothing, whatever its other values are.
    """

    context: Floats
    action: Actions
    reward: Floats
    log_prob: Floats | None
    weight: Floats
    slot_reward: Floats | None = None

    def check(self, problem: Problem) -> None:
        """Raise an ``InputError`` if shapes, actions or rewards do not fit the problem."""
        self._check_shapes(problem)
        # A comparison with NaN is false, so the minimum and the maximum also detect NaN.
        lowest = self.weight.min(initial=np.inf)
        if not (lowest >= 0 and self.weight.max(initial=0.0) < np.inf):
            raise InputError(
                "weight must be finite and 0 or more in every row, and in some row it is not",
                parameter="weight",
            )
        # Selecting rows makes a copy, which is avoided in the usual case that no row is absent.
        rows = slice(None) if lowest > 0 else self.weight > 0
        if not problem.space.contains(self.action[rows]):
            raise InputError(
                f"an action does not belong to the space {problem.space}", parameter="action"
            )
        if self.context.size and not np.isfinite(self.context[rows]).all():
            raise InputError(
                "context must be finite, and some number of it is not", parameter="context"
            )
        problem.scale.check(self.reward[rows])
        if self.log_prob is not None:
            self._check_log_prob(problem, self.log_prob[rows])

    def _check_shapes(self, problem: Problem) -> None:
        optional = ("log_prob", "slot_reward")
        for name, values in self._asdict().items():
            if not isinstance(values, np.ndarray) and not (name in optional and values is None):
                raise InputError(
                    f"{name} must be a numpy array, not {values!r:.60}", parameter=name
                )
        shape = self.reward.shape
        expected = {
            "reward": (shape, shape[:2] if len(shape) >= 2 else ("R", "n")),
            "context": (self.context.shape, (*shape, problem.context_width)),
            "action": (self.action.shape, (*shape, problem.space.slots)),
            "weight": (self.weight.shape, shape),
        }
        if self.log_prob is not None:
            expected["log_prob"] = (self.log_prob.shape, shape)
        if self.slot_reward is not None:
            expected["slot_reward"] = (self.slot_reward.shape, (*shape, problem.space.slots))
        for name, (got, wanted) in expected.items():
            if got != wanted:
                raise InputError(
                    f"{name} has shape {got}, but this problem needs {wanted}", parameter=name
                )
        for name, values in self._asdict().items():
            wanted_kinds = "iu" if name == "action" and not problem.space.reals else "iuf"
            if values is not None and values.dtype.kind not in wanted_kinds:
                kind = "whole numbers" if wanted_kinds == "iu" else "numbers"
                raise InputError(f"{name} must hold {kind}, not {values.dtype}", parameter=name)

    def _check_log_prob(self, problem: Problem, log_prob: Floats) -> None:
        highest = log_prob.max(initial=-np.inf)
        if not (log_prob.min(initial=0.0) > -np.inf and highest < np.inf):
            raise InputError(
                "log_prob must be finite, and some number of it is not", parameter="log_prob"
            )
        if highest > PROBABILITY_TOLERANCE and not problem.space.reals:
            raise InputError(
                f"log_prob must be the logarithm of a probability, 0 or less, not {highest:.6g}",
                parameter="log_prob",
            )
