"""Draws from a clipped mixture without listing the actions: the twin of ``mixture``."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.core.conditioning.marginalization import ROUNDING

FIRST_ROUND = 8
"""Proposals for each row at first; every later round makes twice as many."""
LIMIT = 2000
"""Proposals after which a row gives up."""


class Drawn(NamedTuple):
    """Actions ``[R, n, S]``, and the rows in which no proposal was accepted, ``[R, n]``."""

    action: Actions
    exhausted: Booleans


def rejection(weights: Floats, belief: ConditionalDistribution, rng: np.random.Generator) -> Drawn:
    """Draw from π‡(a) ∝ max(Σ_l w_l π(a | l), 0), with ``weights [R, n, L]`` of any sign.

    An action is proposed by the positive part, Σ_l w_l⁺ π(a | l), and accepted with probability
    max(0, 1 − negative / positive), the negative part being Σ_l w_l⁻ π(a | l). This is exact,
    needs no normalizing constant, and takes one over the share accepted proposals on average. A
    row in which none was accepted is reported as exhausted, and its action means nothing.
    """
    action, found = _round(weights, belief, FIRST_ROUND, rng)
    left = np.logical_not(found)
    count = made = FIRST_ROUND
    while made < LIMIT and left.any():
        # Replicas with fewer rows left are filled up with settled ones, which stay as they are.
        row = np.argsort(~left, axis=1, kind="stable")[:, : left.sum(axis=1).max()]
        count = min(2 * count, LIMIT - made)
        weight = np.take_along_axis(weights, row[..., None], axis=1)
        chosen, found = _round(weight, belief.rows(row), count, rng)
        replica, place = np.nonzero(np.take_along_axis(left, row, axis=1))
        target = (replica, row[replica, place])
        action[target], left[target] = chosen[replica, place], ~found[replica, place]
        made += count
    return Drawn(action, left)


def _round(
    weight: Floats, belief: ConditionalDistribution, count: int, rng: np.random.Generator
) -> tuple[Actions, Booleans]:
    """The first accepted of ``count`` proposals in each row, and whether there is one."""
    proposal = _proposed(weight, belief, count, rng)
    accepted = _accepted(weight, belief.prob(proposal), rng)
    # Where none is accepted this is the first one, which means nothing.
    which = accepted.argmax(axis=-1)
    replicas, rows = which.shape
    place = np.arange(0, replicas * rows * count, count).reshape(replicas, rows) + which
    chosen = proposal.reshape(replicas * rows * count, proposal.shape[-1]).take(place, axis=0)
    return chosen, np.logical_or.reduce(accepted, axis=-1)


def _proposed(
    weight: Floats, belief: ConditionalDistribution, count: int, rng: np.random.Generator
) -> Actions:
    """Draws from the positive part: a level by its weight, then an action at that level."""
    positive = np.maximum(weight, 0.0)
    levels = np.flatnonzero(positive.any(axis=(0, 1)))
    if len(levels) <= 1:
        # Without any positive weight, or any row, the level is all the same: nothing is accepted.
        return belief.sample(int(levels[0]) if len(levels) else 0, count, rng)
    drawn = np.stack([belief.sample(int(level), count, rng) for level in levels])
    share = np.cumsum(positive[..., levels], axis=-1)
    uniform = rng.random((*weight.shape[:2], count)) * share[..., -1:]
    level = (uniform[..., None] >= share[:, :, None, :-1]).sum(axis=-1)
    picked: Actions = np.take_along_axis(drawn, level[None, ..., None], axis=0)[0]
    return picked


def _accepted(weight: Floats, probabilities: Floats, rng: np.random.Generator) -> Booleans:
    """Toss a coin for every proposal: ``[R, m, count]``."""
    positive = (np.maximum(weight, 0.0)[:, :, None] @ probabilities)[:, :, 0]
    above = (weight[:, :, None] @ probabilities)[:, :, 0]
    # What is positive by rounding alone is zero, as in the listed mixture.
    threshold = np.maximum(rng.random(positive.shape), ROUNDING)
    accepted: Booleans = threshold * positive < above
    return accepted
