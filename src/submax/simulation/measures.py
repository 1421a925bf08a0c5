"""Measures of traces: regret by period, shares of actions and of the best one, known bounds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from submax.core.arrays import Floats, Integers
from submax.core.checks import probability, whole_number
from submax.core.errors import InputError
from submax.simulation.trace import Trace

NO_REGRET = 1e-12
"""Expected regret below this is a rounding error: the decision took a best action."""


class Periods(NamedTuple):
    """A measure of every replica in each of several periods, ``values [R, N]``.

    ``ends [N]`` are the last decisions of the periods.
    """

    ends: Integers
    values: Floats


def regret_per_period(trace: Trace, periods: int = 10) -> Periods:
    """Return the mean regret per decision in each of some periods of equal length.

    >>> from submax import Bernoulli, make_policy, simulate
    >>> trace = simulate(Bernoulli.of([0.9, 0.4]), make_policy("ucb1"), observations=500, seed=1)
    >>> mean = regret_per_period(trace, 5).values.mean(axis=0)
    >>> bool(mean[0] > mean[-1])
    True
    """
    ends = _period_ends(trace, periods)
    total = np.concatenate(
        [np.zeros((len(trace.rewards), 1)), trace.accumulated_regret[:, ends]], axis=1
    )
    lengths = np.diff(np.concatenate([[0], trace.steps[ends]]))
    return Periods(trace.steps[ends], np.diff(total, axis=1) / lengths)


def share_of_best(trace: Trace, periods: int = 10) -> Periods:
    """Return the share of decisions in each period that took a best action.

    The trace must keep every decision: simulate with ``points=None``.
    """
    _check_complete(trace, "share_of_best")
    added = np.diff(trace.accumulated_regret, axis=1, prepend=0.0)
    scale = np.maximum(np.abs(trace.accumulated_regret).max(), 1.0)
    best = (added <= NO_REGRET * scale).astype(np.float64)
    ends = _period_ends(trace, periods)
    begins = np.concatenate([[0], ends[:-1] + 1])
    lengths = np.diff(np.concatenate([[0], trace.steps[ends]]))
    return Periods(trace.steps[ends], np.add.reduceat(best, begins, axis=1) / lengths)


def pulls(trace: Trace, choices: int, slot: int = 0) -> Integers:
    """Return how often each choice of a slot was taken, ``[R, choices]``.

    The trace must keep every decision: simulate with ``points=None``.
    """
    _check_complete(trace, "pulls")
    whole_number("choices", choices, at_least=1)
    taken = trace.actions[..., slot].astype(np.int64)
    return np.stack([(taken == choice).sum(axis=1) for choice in range(choices)], axis=1)


def quantiles(trace: Trace, shares: Sequence[float] = (0.05, 0.5, 0.95)) -> Floats:
    """Return quantiles over replicas of the accumulated regret, ``[len(shares), P]``."""
    for share in shares:
        probability("each of shares", share)
    found: Floats = np.quantile(trace.accumulated_regret, list(shares), axis=0)
    return found


def lai_robbins(means: Sequence[float], steps: Integers) -> Floats:
    """Return Lai and Robbins' lower bound of the regret of Bernoulli arms after these decisions.

    Σ_a (μ* − μ_a) / kl(μ_a, μ*) · ln t: no policy that is good for all means has a regret that
    grows more slowly. It holds as t grows; for small t regret can be lower.

    >>> lai_robbins([0.5, 0.4], np.array([1000])).round(2).tolist()
    [34.31]

    Reference: Lai and Robbins (1985), Asymptotically efficient adaptive allocation rules.
    """
    values = np.array(means, dtype=np.float64)
    for mean in means:
        probability("each of means", mean)
    best = values.max()
    worse = values[values < best]
    divergence = scipy.special.rel_entr(worse, best) + scipy.special.rel_entr(1 - worse, 1 - best)
    constant = float(((best - worse) / divergence).sum())
    bound: Floats = constant * np.log(np.maximum(steps, 1))
    return bound


def _period_ends(trace: Trace, periods: int) -> Integers:
    """The places of the last kept decision of each period."""
    points = len(trace.steps)
    whole_number("periods", periods, at_least=1, at_most=points)
    wanted = trace.steps[-1] * np.arange(1, periods + 1) / periods
    places: Integers = np.searchsorted(trace.steps, wanted, side="right") - 1
    if len(np.unique(np.maximum(places, 0))) < periods:
        raise InputError(
            f"the trace keeps {points} decisions, too few for {periods} periods: take fewer "
            "periods, or simulate with more points",
            parameter="periods",
        )
    return places


def _check_complete(trace: Trace, who: str) -> None:
    if len(trace.steps) != trace.steps[-1]:
        raise InputError(
            f"{who} needs every decision, and this trace keeps {len(trace.steps)} of "
            f"{trace.steps[-1]}: simulate with points=None"
        )
