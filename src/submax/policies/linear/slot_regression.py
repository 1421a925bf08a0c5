"""Bayesian probit regression on joint choices."""

import math
from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from submax.core.arrays import Floats, Integers
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.rewards.scale import Scale
from submax.core.running.stored import stored
from submax.policies.linear.slot_effects import SlotEffects

BLOCK = 2**21
"""Rows are prepared together up to so many active effects."""


class Rows(NamedTuple):
    """Feedback in the order it is learned, ready to use: ``[n, R]`` and ``[n, R, E]``.

    ``sign`` is +1 for the highest reward level and −1 for all others; on a scale whose levels move,
    +1 for the upper half of what a reward can be.
    """

    position: Integers
    value: Floats
    sign: Floats
    weight: Floats


@stored("slot-regression")
class SlotRegression(NamedTuple):
    """P(highest reward | action, context) = Φ(Σ_i w_i x_i), with w_i ~ N(``mean``, ``variance``).

    Both are ``[R, effects]``; x_i is 1 or a context coordinate for the effects that play a part
    in the action, and 0 for all others. One row after the other, the posterior is replaced by the
    independent normals with its means and variances: with y = ±1, Σ² = 1 + Σ_i x_i² s_i²,
    t = y Σ_i x_i m_i / Σ, v = φ(t) / Φ(t) and u = v (v + t)

        m_i ← m_i + y x_i s_i² v / Σ,    s_i² ← s_i² (1 − x_i² s_i² u / Σ²).

    A weight multiplies what the row adds to the precision 1 / s² and to m / s².

    Reference: Graepel et al. (2010), Web-scale Bayesian click-through rate prediction.
    """

    mean: Floats
    variance: Floats

    @classmethod
    def prior(cls, effects: SlotEffects, replicas: int, total_variance: float) -> Self:
        """No feedback."""
        variance = np.tile(effects.prior_variances(total_variance), (replicas, 1))
        return cls(np.zeros(variance.shape), variance)

    def add(self, effects: SlotEffects, problem: Problem, feedback: Feedback) -> Self:
        """The posterior after all rows, in their order."""
        mean, variance = self.mean.ravel().copy(), self.variance.ravel().copy()
        for rows in _blocks(effects, problem, feedback):
            for row in map(Rows._make, zip(*rows, strict=True)):
                _learn(mean, variance, row)
        return self._replace(
            mean=mean.reshape(self.mean.shape), variance=variance.reshape(self.mean.shape)
        )


def _learn(mean: Floats, variance: Floats, row: Rows) -> None:
    """Learn one row of every replica, in place."""
    before, spread = mean[row.position], variance[row.position]
    gain = spread * row.value
    explained = gain * row.value
    total = 1.0 + explained.sum(axis=-1)
    deviation = np.sqrt(total)
    surprise = row.sign * (before * row.value).sum(axis=-1) / deviation
    slope = math.sqrt(2 / math.pi) / special.erfcx(-surprise / math.sqrt(2))
    curvature = np.clip(slope * (slope + surprise), 0.0, 1.0)
    lost = explained * (curvature / total)[:, None]
    kept = 1.0 - lost
    counted = row.weight[:, None]
    scale = kept + counted * lost
    step = gain * (row.sign * slope / deviation)[:, None]
    mean[row.position] = before + counted * step / scale
    variance[row.position] = spread * (kept / scale)


def high_from(scale: Scale) -> float:
    """Rewards above this are high."""
    if scale.moves:
        return sum(scale.known_bounds("a regression on high rewards")) / 2
    nothing = np.zeros((1, 0))
    second, highest = scale.reward_encoding(nothing, nothing).levels[0, -2:]
    return float(second + highest) / 2


def _blocks(effects: SlotEffects, problem: Problem, feedback: Feedback) -> Iterator[Rows]:
    """Rows that are there, from the first on; replicas that have fewer end with weight 0."""
    there = feedback.weight > 0
    replicas = len(there)
    order = np.argsort(~there, axis=1, kind="stable")[:, : there.sum(axis=1).max(initial=0)]
    slots = len(effects.sizes)
    active = 1 + effects.contexts * (1 + slots) + slots + len(effects.pairs)
    step = max(1, BLOCK // (replicas * active))
    for start in range(0, order.shape[1], step):
        yield _prepared(effects, problem, feedback, order[:, start : start + step])


def _prepared(effects: SlotEffects, problem: Problem, feedback: Feedback, order: Integers) -> Rows:
    replica = np.arange(len(order), dtype=np.int64)
    chosen = replica[:, None], order
    weight = feedback.weight[chosen]
    there = weight > 0
    # A row that is not there may hold anything.
    action = np.where(there[..., None], feedback.action[chosen], 0)
    context = np.where(there[..., None], feedback.context[chosen], 0.0)
    highest = np.where(there, feedback.reward[chosen], -np.inf) > high_from(problem.scale)
    position = effects.active(action) + effects.count * replica[:, None, None]
    ready = (position, effects.values(context), np.where(highest, 1.0, -1.0), weight)
    return Rows(*(np.ascontiguousarray(np.swapaxes(part, 0, 1)) for part in ready))
