"""The result that a sweep stores for one cell: one policy in one configuration."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.simulation.trace import Trace

QUANTILES = (0.025, 0.975)
"""The ends of the central 95 % range over replicas."""
LATE_SHARE = 0.9
"""The share of a run after which its late part begins, over which the slope of regret is taken."""


class Curve(NamedTuple):
    """Mean and central 95 % range over replicas at each of P steps; every array is ``[P]``."""

    mean: Floats
    q025: Floats
    q975: Floats

    @classmethod
    def of(cls, values: Floats) -> Self:
        """Summarize ``values [R, P]`` over the R replicas."""
        low, high = np.quantile(values, QUANTILES, axis=0)
        return cls(values.mean(axis=0), low, high)


class Seconds(NamedTuple):
    """Wall-clock seconds of a run: in total, and the parts that the policy spent.

    ``deciding`` is the time in ``act``. The time in ``update`` is split into ``compiling``, the
    compilation of networks by JAX, and ``training``, which is all the rest.
    """

    all: float
    deciding: float = 0.0
    training: float = 0.0
    compiling: float = 0.0


class CellResult(NamedTuple):
    """The curves of one run, the final value of every replica ``[R]``, and the seconds it took.

    ``steps [P]`` are the decisions at which the curves are known. ``late_slope [R]`` is the mean
    regret per decision in the last tenth of the run. ``fallbacks`` counts decisions for which the
    policy fell back to a simpler rule.
    """

    steps: Integers
    regret: Curve
    reward: Curve
    final_regret: Floats
    final_reward: Floats
    late_slope: Floats
    seconds: Seconds
    fallbacks: int = 0

    @classmethod
    def of(cls, trace: Trace, seconds: Seconds, fallbacks: int = 0) -> Self:
        """Summarize a trace over its replicas."""
        return cls(
            trace.steps,
            Curve.of(trace.accumulated_regret),
            Curve.of(trace.accumulated_reward),
            trace.final_regret.copy(),
            trace.final_reward.copy(),
            _late_slope(trace),
            seconds,
            fallbacks,
        )


def _late_slope(trace: Trace) -> Floats:
    """The mean regret per decision from 90 % of the decisions to the last, in each replica."""
    last = len(trace.steps) - 1
    first = min(int(np.searchsorted(trace.steps, LATE_SHARE * trace.steps[last])), last)
    added = trace.accumulated_regret[:, last] - trace.accumulated_regret[:, first]
    slope: Floats = added / max(int(trace.steps[last] - trace.steps[first]), 1)
    return slope
