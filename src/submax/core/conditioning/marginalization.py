"""Generalized marginalization: mix, clip at zero, normalize, and fall back to uniform."""

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.conditioning.table import Table

SUM_TOLERANCE = 8 * np.finfo(np.float64).eps
"""A difference of sums that is smaller than this share of the sums is a rounding error."""


def mixture(table: Table, weights: Floats) -> Floats:
    """Return the policy π‡(a) ∝ max(Σ_l w_l π(a | l), 0), with w_l the ``weights [..., L]``.

    The policy is uniform if the clipped mixture is zero everywhere, or if a level with a weight
    other than 0 was never observed: its conditioned policy then consists of smoothing, not of
    data. A sum that is positive only by a rounding error counts as zero.

    Reference: Xu et al. (2024), equations gm-inference and gm-inference-submax.
    """
    forget = None if table.prior.all() else unseen(table, weights)
    mass, total = with_total(clipped(weights, table.probabilities), forget)
    mass *= 1 / total
    return mass


def clipped(weights: Floats, probabilities: Floats) -> Floats:
    """Return max(Σ_l w_l π(a | l), 0), and 0 if the sum is positive only by a rounding error.

    ``[..., L]`` and ``[..., L, M] -> [..., M]``.
    """
    added = np.einsum("...l,...lm->...m", np.maximum(weights, 0.0), probabilities)
    mixed: Floats = np.einsum("...l,...lm->...m", weights, probabilities)
    # Computed in place, because with many actions memory traffic is most of the cost.
    added *= SUM_TOLERANCE
    mixed[mixed <= added] = 0.0
    return mixed


def mixture_of_one(probabilities: Floats, weights: Floats, forget: bool) -> Floats:
    """Return ``mixture`` of a single row, ``[L, M]`` and ``[L]`` give ``[M]``, by fewer calls.

    With ``forget`` the result is uniform.
    """
    mixed = np.dot(weights, probabilities)
    added = np.dot(np.maximum(weights, 0.0), probabilities)
    mass: Floats = np.where(mixed > SUM_TOLERANCE * added, mixed, 0.0)
    total = np.add.reduce(mass)
    if forget or total == 0:
        return np.full(len(mass), 1 / len(mass))
    mass *= 1 / total
    return mass


def ends(table: Table, lowest: float | Floats, highest: float | Floats) -> Floats:
    """Return weights ``[..., L]`` that are 0 except at the lowest and the highest level."""
    weights = np.zeros(table.prior.shape)
    weights[..., 0] = lowest
    weights[..., -1] = highest
    return weights


def unseen(table: Table, weights: Floats) -> Booleans:
    """Return whether a level with a weight other than 0 was never observed, ``[...]``."""
    missing: Booleans = ((weights != 0) & (table.prior == 0)).any(axis=-1)
    return missing


def normalized(mass: Floats, forget: Booleans | None = None) -> Floats:
    """Divide by the sum over the last axis; uniform if it is zero or ``forget [...]`` is set.

    >>> normalized(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    mass, total = with_total(mass, forget)
    result: Floats = mass * (1 / total)
    return result


def with_total(mass: Floats, forget: Booleans | None = None) -> tuple[Floats, Floats]:
    """Return the mass and its sum over the last axis, ``[..., 1]``.

    If the sum is zero, or ``forget [...]`` is set, the mass is 1 for every entry.
    """
    total = mass.sum(axis=-1, keepdims=True)
    empty = total == 0
    if forget is not None:
        empty |= forget[..., None]
    if np.count_nonzero(empty):
        mass, total = np.where(empty, 1.0, mass), np.where(empty, mass.shape[-1], total)
    return mass, total
