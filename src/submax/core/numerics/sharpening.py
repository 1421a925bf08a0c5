"""Sharper or softer versions of tables of probabilities."""

import numpy as np

from submax.core.arrays import Floats

TIES = 1e-9
"""Probabilities that differ by less than this are tied for the greedy action."""


def sharpened(table: Floats, temperature: float) -> Floats:
    """Return probabilities to the power of 1 / temperature, normalized; 0 is greedy: ``[..., M]``.

    Tied actions share the probability of the greedy one.

    >>> sharpened(np.array([[0.2, 0.8]]), 0.5).round(3).tolist()
    [[0.059, 0.941]]
    """
    if temperature == 0:
        best = table >= table.max(axis=-1, keepdims=True) - TIES
        greedy: Floats = best / best.sum(axis=-1, keepdims=True)
        return greedy
    with np.errstate(divide="ignore"):
        score = np.log(table) / temperature
    power = np.exp(score - score.max(axis=-1, keepdims=True))
    result: Floats = power / power.sum(axis=-1, keepdims=True)
    return result
