"""What is kept of one cell of a sweep."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.simulation.trace import Trace

QUANTILES = (0.025, 0.975)


class Curve(NamedTuple):
    """Mean and 95 % range over replicas at each step, all ``[P]``."""

    mean: Floats
    q025: Floats
    q975: Floats

    @classmethod
    def of(cls, values: Floats) -> Self:
        """Of ``values [R, P]``."""
        low, high = np.quantile(values, QUANTILES, axis=0)
        return cls(values.mean(axis=0), low, high)


class Seconds(NamedTuple):
    """How long a run took in all, and the parts of it that belong to the policy.

    ``training`` is without ``compiling``.
    """

    all: float
    deciding: float = 0.0
    training: float = 0.0
    compiling: float = 0.0


class CellResult(NamedTuple):
    """The curves of one run, every replica's last value ``[R]``, and how long it took.

    ``fallbacks`` counts the decisions that were taken more simply than asked.
    """

    steps: Integers
    regret: Curve
    reward: Curve
    final_regret: Floats
    final_reward: Floats
    seconds: Seconds
    fallbacks: int = 0

    @classmethod
    def of(cls, trace: Trace, seconds: Seconds, fallbacks: int = 0) -> Self:
        """Summed up over the replicas of a trace."""
        return cls(
            trace.steps,
            Curve.of(trace.accumulated_regret),
            Curve.of(trace.accumulated_reward),
            trace.final_regret.copy(),
            trace.final_reward.copy(),
            seconds,
            fallbacks,
        )
