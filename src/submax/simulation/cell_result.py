"""The result that a sweep stores for one cell: one policy in one configuration."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.simulation.trace import Trace

QUANTILES = (0.025, 0.975)
"""The ends of the central 95 % range over replicas."""
LATE_SHARE = 0.9
"""The share of a run after which its late part begins, over which the slope of regret is taken."""


class Curve(NamedTuple):
    """Mean, central 95 % range and standard error of the mean over replicas, each ``[P]``."""

    mean: Floats
    q025: Floats
    q975: Floats
    error: Floats

    @classmethod
    def of(cls, values: Floats) -> Self:
        """Summarize ``values [R, P]`` over the R replicas."""
        low, high = np.quantile(values, QUANTILES, axis=0)
        return cls(values.mean(axis=0), low, high, _errors(values))


class Seconds(NamedTuple):
    """Wall-clock seconds of a run: in total, and the parts that the policy spent.

    ``deciding`` is the time in ``act``. The time in ``update`` is split into ``compiling``, the
    compilation of networks by JAX, and ``training``, which is all the rest.
    """

    all: float
    deciding: float = 0.0
    training: float = 0.0
    compiling: float = 0.0


STORED_NUMBERS = 250_000
"""The curves of single replicas are stored if they have at most this many numbers, 1 MB each."""


class CellResult(NamedTuple):
    """The curves of one run, the final value of every replica ``[R]``, and the seconds it took.

    ``steps [P]`` are the decisions at which the curves are known. ``late_slope [R]`` is the mean
    regret per decision in the last tenth of the run. ``fallbacks`` counts decisions for which the
    policy fell back to a simpler rule. ``replica_curves [2, R, P]`` has the regret and the reward
    of every replica, in single precision; None if these are too many numbers to store.
    """

    steps: Integers
    regret: Curve
    reward: Curve
    final_regret: Floats
    final_reward: Floats
    late_slope: Floats
    seconds: Seconds
    fallbacks: int = 0
    replica_curves: NDArray[np.float32] | None = None

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
            _replica_curves(trace),
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """The result of all replicas of several runs of the same cell, in order.

        Means and final values are exact; the quantiles of curves are in single precision.
        """
        if len(parts) == 1:
            return parts[0]
        curves = [part.replica_curves for part in parts]
        assert all(one is not None for one in curves), "replicas are added to stored curves only"
        together = np.concatenate([one for one in curves if one is not None], axis=1)
        share = np.array([len(part.final_regret) for part in parts]) / together.shape[1]
        regret, reward = (
            Curve.of(values)._replace(mean=np.tensordot(share, np.stack(means), 1))
            for means, values in zip(
                ([part.regret.mean for part in parts], [part.reward.mean for part in parts]),
                together.astype(np.float64),
                strict=True,
            )
        )
        final_regret, final_reward, late_slope = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("final_regret", "final_reward", "late_slope")
        )
        return cls(
            parts[0].steps,
            regret,
            reward,
            final_regret,
            final_reward,
            late_slope,
            Seconds(*np.sum([part.seconds for part in parts], axis=0).tolist()),
            sum(part.fallbacks for part in parts),
            together if together[0].size <= STORED_NUMBERS else None,
        )


def _errors(values: Floats) -> Floats:
    """The standard error of the mean over replicas, ``[R, P] -> [P]``; 0 for a single replica."""
    if len(values) < 2:
        return np.zeros(values.shape[1])
    errors: Floats = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return errors


def _replica_curves(trace: Trace) -> NDArray[np.float32] | None:
    if trace.accumulated_regret.size > STORED_NUMBERS:
        return None
    return np.stack([trace.accumulated_regret, trace.accumulated_reward]).astype(np.float32)


def _late_slope(trace: Trace) -> Floats:
    """The mean regret per decision from 90 % of the decisions to the last, in each replica."""
    last = len(trace.steps) - 1
    first = min(int(np.searchsorted(trace.steps, LATE_SHARE * trace.steps[last])), last)
    added = trace.accumulated_regret[:, last] - trace.accumulated_regret[:, first]
    slope: Floats = added / max(int(trace.steps[last] - trace.steps[first]), 1)
    return slope
