"""Tables of preferences between arms, and what an arm that is not the best loses."""

from collections.abc import Callable, Mapping

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import InputError

ROUNDING = 1e-9
"""How far P_ij + P_ji may be from 1, because users write rounded numbers."""


def preferences_of(utilities: Floats) -> Floats:
    """Return Bradley and Terry's P_ij = 1 / (1 + exp(u_j − u_i)): ``[..., K] -> [..., K, K]``."""
    ahead = utilities[..., :, None] - utilities[..., None, :]
    # The tangent does not overflow, and P_ij + P_ji is exactly 1.
    found: Floats = 0.5 + 0.5 * np.tanh(0.5 * ahead)
    return found


def checked_preferences(rows: object) -> Floats:
    """Return the rows as an array ``[K, K]``; refuse what is not a table of preferences."""
    try:
        table = np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    square = table.ndim == 2 and table.shape[0] == table.shape[1]
    if not square or not np.all((table >= 0) & (table <= 1)):
        raise InputError(
            "preferences must be a square table of probabilities, a row for each arm, such as "
            f"((0.5, 0.7), (0.3, 0.5)), not {rows!r:.80}",
            parameter="preferences",
        )
    wrong = np.argwhere(np.abs(table + table.T - 1) > ROUNDING)
    if len(wrong):
        first, second = wrong[0].tolist()
        raise InputError(
            f"preferences say that arm {first} beats arm {second} with probability "
            f"{table[first, second]:g}, and {second} beats {first} with {table[second, first]:g}: "
            "give numbers that add up to 1, and 0.5 for an arm against itself",
            parameter="preferences",
        )
    return table


def has_condorcet_winner(preferences: Floats) -> bool:
    """Return whether one arm of ``[K, K]`` beats every other arm."""
    beats = preferences > 0.5
    return bool((beats.sum(axis=1) == len(preferences) - 1).any())


def condorcet_loss(preferences: Floats) -> Floats:
    """Return P_wi − 1/2 of every arm i, with w the arm that beats most others, ``[R, K]``."""
    best = (preferences > 0.5).sum(axis=2).argmax(axis=1)
    loss: Floats = preferences[np.arange(len(best)), best] - 0.5
    return loss


def copeland_loss(preferences: Floats) -> Floats:
    """Return how much smaller the share of other arms is that each arm beats, ``[R, K]``."""
    share = (preferences > 0.5).sum(axis=2) / (preferences.shape[1] - 1)
    loss: Floats = share.max(axis=1, keepdims=True) - share
    return loss


def borda_loss(preferences: Floats) -> Floats:
    """Return how much less often each arm beats a random other arm than the best one, ``[R, K]``.

    An arm against itself is a coin flip, which is left out.
    """
    score = (preferences.sum(axis=2) - 0.5) / (preferences.shape[1] - 1)
    loss: Floats = score.max(axis=1, keepdims=True) - score
    return loss


LOSSES: Mapping[str, Callable[[Floats], Floats]] = {
    "condorcet": condorcet_loss,
    "copeland": copeland_loss,
    "borda": borda_loss,
}
"""The loss of every arm, ``[R, K, K] -> [R, K]``, by what makes an arm the best one."""
