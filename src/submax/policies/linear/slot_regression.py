"""Bayesian probit regression on joint choices."""

import math
from collections.abc import Iterator
from typing import NamedTuple, Self

import numpy as np
import scipy

from submax.core.arrays import Floats, Integers
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.rewards.scale import Scale
from submax.core.running.stored import stored
from submax.policies.linear.slot_effects import SlotEffects

EFFECTS_AT_ONCE = 2**21
"""About how many active effects of rows are prepared together, 16 MB of float64."""


class ProbitRows(NamedTuple):
    """Rows of feedback as inputs of the probit regression, in the order they are learned.

    ``position`` and ``value``, both ``[n, R, E]``, are the positions of the active effects and
    their factors x. ``sign [n, R]`` is +1 for a high reward and −1 for a low one, see
    `high_reward_threshold`; ``weight`` is ``[n, R]``.
    """

    position: Integers
    value: Floats
    sign: Floats
    weight: Floats


@stored("slot-regression")
class SlotRegression(NamedTuple):
    """P(highest reward | action, context) = Φ(Σ_i w_i x_i), with w_i ~ N(``mean``, ``variance``).

    Both are ``[R, effects]``; x_i is 1 or a context coordinate for the effects that are active in
    the action, and 0 for all others. After each row the posterior is approximated by independent
    normals with the same means and variances: with y = ±1, Σ² = 1 + Σ_i x_i² s_i²,
    t = y Σ_i x_i m_i / Σ, v = φ(t) / Φ(t) and u = v (v + t)

        m_i ← m_i + y x_i s_i² v / Σ,    s_i² ← s_i² (1 − x_i² s_i² u / Σ²).

    The weight of a row multiplies what the row adds to the precision 1 / s² and to m / s².

    Reference: Graepel et al. (2010), Web-scale Bayesian click-through rate prediction.
    """

    mean: Floats
    variance: Floats

    @classmethod
    def prior(cls, effects: SlotEffects, replicas: int, total_variance: float) -> Self:
        """The regression before any feedback."""
        variance = np.tile(effects.prior_variances(total_variance), (replicas, 1))
        return cls(np.zeros(variance.shape), variance)

    def add(self, effects: SlotEffects, problem: Problem, feedback: Feedback) -> Self:
        """The posterior after the rows of feedback, learned in their order."""
        mean, variance = self.mean.ravel().copy(), self.variance.ravel().copy()
        for rows in _blocks(effects, problem, feedback):
            for row in map(ProbitRows._make, zip(*rows, strict=True)):
                _learn(mean, variance, row)
        return self._replace(
            mean=mean.reshape(self.mean.shape), variance=variance.reshape(self.mean.shape)
        )


def _learn(mean: Floats, variance: Floats, row: ProbitRows) -> None:
    """Update the mean m and the variance s² with one row of every replica, in place."""
    old_mean, old_variance = mean[row.position], variance[row.position]
    gain = old_variance * row.value
    explained = gain * row.value
    total = 1.0 + explained.sum(axis=-1)
    deviation = np.sqrt(total)
    margin = row.sign * (old_mean * row.value).sum(axis=-1) / deviation
    # v = φ(t) / Φ(t) by the scaled complementary error function, which does not underflow.
    slope = math.sqrt(2 / math.pi) / scipy.special.erfcx(-margin / math.sqrt(2))
    curvature = np.clip(slope * (slope + margin), 0.0, 1.0)
    reduction = explained * (curvature / total)[:, None]
    remaining = 1.0 - reduction
    weight = row.weight[:, None]
    scale = remaining + weight * reduction
    step = gain * (row.sign * slope / deviation)[:, None]
    mean[row.position] = old_mean + weight * step / scale
    variance[row.position] = old_variance * (remaining / scale)


def high_reward_threshold(scale: Scale) -> float:
    """The threshold above which a reward is high.

    It lies between the two highest levels, or in the middle of the known bounds if the levels of
    the scale depend on the observed rewards.
    """
    if scale.moves:
        return sum(scale.known_bounds("a regression on high rewards")) / 2
    nothing = np.zeros((1, 0))
    second, highest = scale.reward_encoding(nothing, nothing).levels[0, -2:]
    return float(second + highest) / 2


def _blocks(effects: SlotEffects, problem: Problem, feedback: Feedback) -> Iterator[ProbitRows]:
    """Rows with weight, in order and in blocks; shorter replicas end with rows of weight 0."""
    present = feedback.weight > 0
    replicas = len(present)
    order = np.argsort(~present, axis=1, kind="stable")[:, : present.sum(axis=1).max(initial=0)]
    slots = len(effects.sizes)
    active = 1 + effects.contexts * (1 + slots) + slots + len(effects.pairs)
    step = max(1, EFFECTS_AT_ONCE // (replicas * active))
    for start in range(0, order.shape[1], step):
        yield _prepared(effects, problem, feedback, order[:, start : start + step])


def _prepared(
    effects: SlotEffects, problem: Problem, feedback: Feedback, order: Integers
) -> ProbitRows:
    """The rows of each replica at the indices ``order [R, n]``, as inputs of the regression."""
    replica = np.arange(len(order), dtype=np.int64)
    chosen = replica[:, None], order
    weight = feedback.weight[chosen]
    present = weight > 0
    # A row of weight 0 may hold any values.
    action = np.where(present[..., None], feedback.action[chosen], 0)
    context = np.where(present[..., None], feedback.context[chosen], 0.0)
    threshold = high_reward_threshold(problem.scale)
    high = np.where(present, feedback.reward[chosen], -np.inf) > threshold
    position = effects.active(action) + effects.count * replica[:, None, None]
    inputs = (position, effects.values(context), np.where(high, 1.0, -1.0), weight)
    return ProbitRows(*(np.ascontiguousarray(np.swapaxes(part, 0, 1)) for part in inputs))
