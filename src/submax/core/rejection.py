"""Draws from a clipped mixture without listing the actions: the twin of ``mixture``."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.marginalization import ROUNDING

FIRST_ROUND = 8
"""Proposals for each row at first; every later round makes twice as many."""
LIMIT = 2000
"""Proposals after which a row gives up."""

Propose = Callable[[Integers, int, int, np.random.Generator], Integers]
"""(rows ``[R, m]``, level, count, rng) → actions ``[R, m, count, S]`` drawn at that level."""
Probability = Callable[[Integers, Integers], Floats]
"""(rows ``[R, m]``, actions ``[R, m, count, S]``) → probabilities ``[R, m, L, count]``."""


class Drawn(NamedTuple):
    """Actions ``[R, n, S]``, and the rows in which no proposal was accepted, ``[R, n]``."""

    action: Integers
    exhausted: Booleans


def rejection(
    weights: Floats, propose: Propose, probability: Probability, rng: np.random.Generator
) -> Drawn:
    """Draw from π‡(a) ∝ max(Σ_l w_l π(a | l), 0), with ``weights [R, n, L]`` of any sign.

    An action is proposed by the positive part, Σ_l w_l⁺ π(a | l), and accepted with probability
    max(0, 1 − negative / positive), the negative part being Σ_l w_l⁻ π(a | l). This is exact,
    needs no normalizing constant, and takes one over the share accepted proposals on average. A
    row in which none was accepted is reported as exhausted, and its action means nothing.
    """
    left: Booleans = np.ones(weights.shape[:2], dtype=bool)
    row = np.broadcast_to(np.arange(weights.shape[1]), left.shape)
    action: Integers | None = None
    count, made = FIRST_ROUND, 0
    while action is None or (made < LIMIT and left.any()):
        weight = np.take_along_axis(weights, row[..., None], axis=1)
        proposal = _proposed(weight, row, count, propose, rng)
        accepted = _accepted(weight, probability(row, proposal), rng)
        found: Booleans = np.any(accepted, axis=-1)
        which = np.where(found, accepted.argmax(axis=-1), count - 1)
        chosen = np.take_along_axis(proposal, which[..., None, None], axis=2)[:, :, 0]
        if action is None:
            action, left = chosen, np.logical_not(found)
        else:
            # Replicas with fewer rows left are filled up with settled ones, which stay as they are.
            replica, place = np.nonzero(np.take_along_axis(left, row, axis=1))
            target = (replica, row[replica, place])
            action[target], left[target] = chosen[replica, place], ~found[replica, place]
        made, count = made + count, 2 * count
        row = np.argsort(~left, axis=1, kind="stable")[:, : left.sum(axis=1).max(initial=0)]
    return Drawn(action, left)


def _proposed(
    weight: Floats, row: Integers, count: int, propose: Propose, rng: np.random.Generator
) -> Integers:
    """Draws from the positive part: a level by its weight, then an action at that level."""
    positive = np.maximum(weight, 0.0)
    levels = np.flatnonzero(positive.any(axis=(0, 1)))
    if len(levels) == 1:
        return propose(row, int(levels[0]), count, rng)
    drawn = np.stack([propose(row, int(level), count, rng) for level in levels])
    share = np.cumsum(positive[..., levels], axis=-1)
    uniform = rng.random((*row.shape, count)) * share[..., -1:]
    level = (uniform[..., None] >= share[:, :, None, :-1]).sum(axis=-1)
    picked: Integers = np.take_along_axis(drawn, level[None, ..., None], axis=0)[0]
    return picked


def _accepted(weight: Floats, probabilities: Floats, rng: np.random.Generator) -> Booleans:
    """Toss a coin for every proposal: ``[R, m, count]``."""
    positive = np.einsum("rml,rmlc->rmc", np.maximum(weight, 0.0), probabilities)
    negative = np.einsum("rml,rmlc->rmc", np.maximum(-weight, 0.0), probabilities)
    # What is positive by rounding alone is zero, as in the listed mixture.
    above = positive - negative
    uniform = rng.random(positive.shape)
    accepted: Booleans = (uniform * positive < above) & (above > ROUNDING * positive)
    return accepted
