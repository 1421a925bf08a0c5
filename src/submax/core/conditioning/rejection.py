"""Rejection sampling from a clipped mixture, for actions that cannot be listed."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.core.conditioning.marginalization import SUM_TOLERANCE

FIRST_ROUND = 8
"""Proposals for each row in the first round; each later round makes twice as many."""
LIMIT = 2000
"""Proposals after which a row is given up and reported as exhausted."""


class RejectionDraws(NamedTuple):
    """Actions ``[R, n, S]``, and the rows in which no proposal was accepted, ``[R, n]``."""

    action: Actions
    exhausted: Booleans


def rejection(
    weights: Floats, belief: ConditionalDistribution, rng: np.random.Generator
) -> RejectionDraws:
    """Draw from π‡(a) ∝ max(Σ_l w_l π(a | l), 0), with ``weights [R, n, L]`` of any sign.

    An action is proposed by the positive part, Σ_l w_l⁺ π(a | l), and accepted with probability
    max(0, 1 − negative / positive), the negative part being Σ_l w_l⁻ π(a | l). This is exact and
    needs no normalizing constant. A draw takes 1 / (acceptance rate) proposals on average. A row in
    which no proposal was accepted is reported as exhausted, and its action must not be used.
    """
    action, found = _round(weights, belief, FIRST_ROUND, rng)
    left = np.logical_not(found)
    count = made = FIRST_ROUND
    while made < LIMIT and left.any():
        # All replicas draw for equally many rows; draws for rows that are done are discarded.
        row = np.argsort(~left, axis=1, kind="stable")[:, : left.sum(axis=1).max()]
        count = min(2 * count, LIMIT - made)
        weight = np.take_along_axis(weights, row[..., None], axis=1)
        chosen, found = _round(weight, belief.rows(row), count, rng)
        replica, place = np.nonzero(np.take_along_axis(left, row, axis=1))
        target = (replica, row[replica, place])
        action[target], left[target] = chosen[replica, place], ~found[replica, place]
        made += count
    return RejectionDraws(action, left)


def _round(
    weight: Floats, belief: ConditionalDistribution, count: int, rng: np.random.Generator
) -> tuple[Actions, Booleans]:
    """Return the first accepted of ``count`` proposals in each row, and whether there is one."""
    proposal = _proposed(weight, belief, count, rng)
    accepted = _accepted(weight, belief.prob(proposal), rng)
    # If none is accepted, argmax returns the first proposal, which the caller discards.
    which = accepted.argmax(axis=-1)
    replicas, rows = which.shape
    place = np.arange(0, replicas * rows * count, count).reshape(replicas, rows) + which
    chosen = proposal.reshape(replicas * rows * count, proposal.shape[-1]).take(place, axis=0)
    return chosen, np.logical_or.reduce(accepted, axis=-1)


def _proposed(
    weight: Floats, belief: ConditionalDistribution, count: int, rng: np.random.Generator
) -> Actions:
    """Draw proposals from the positive part: a level by its weight, then an action."""
    positive = np.maximum(weight, 0.0)
    levels = np.flatnonzero(positive.any(axis=(0, 1)))
    if len(levels) <= 1:
        # If no weight is positive, nothing will be accepted, whatever the level.
        return belief.sample(int(levels[0]) if len(levels) else 0, count, rng)
    drawn = np.stack([belief.sample(int(level), count, rng) for level in levels])
    share = np.cumsum(positive[..., levels], axis=-1)
    uniform = rng.random((*weight.shape[:2], count)) * share[..., -1:]
    level = (uniform[..., None] >= share[:, :, None, :-1]).sum(axis=-1)
    picked: Actions = np.take_along_axis(drawn, level[None, ..., None], axis=0)[0]
    return picked


def _accepted(weight: Floats, probabilities: Floats, rng: np.random.Generator) -> Booleans:
    """Return which proposals are accepted, at random: ``[R, m, count]``."""
    positive = (np.maximum(weight, 0.0)[:, :, None] @ probabilities)[:, :, 0]
    above = (weight[:, :, None] @ probabilities)[:, :, 0]
    # As in ``mixture``, a sum that is positive only by a rounding error counts as zero.
    threshold = np.maximum(rng.random(positive.shape), SUM_TOLERANCE)
    accepted: Booleans = threshold * positive < above
    return accepted
