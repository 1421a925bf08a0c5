"""Generalized marginalization: mix, clip at zero, normalize, and fall back to uniform."""

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.conditioning.table import Table

ROUNDING = 8 * np.finfo(np.float64).eps


def mixture(table: Table, weights: Floats) -> Floats:
    """The policy π‡(a) ∝ max(Σ_l w_l π(a | l), 0), with w_l the ``weights [..., L]``.

    Uniform where nothing is known: the clipped mixture is zero everywhere, or a level that
    carries weight was never observed, so that its conditioned policy is smoothing and no data.
    A sum that is zero but for rounding counts as zero.

    Reference: Xu et al. (2024), equations gm-inference and gm-inference-submax.
    """
    forget = None if table.prior.all() else unseen(table, weights)
    mass, total = with_total(clipped(weights, table.probabilities), forget)
    mass *= 1 / total
    return mass


def clipped(weights: Floats, probabilities: Floats) -> Floats:
    """max(Σ_l w_l π(a | l), 0), with 0 also where it is positive by rounding alone.

    ``[..., L]`` and ``[..., L, M] -> [..., M]``.
    """
    added = np.einsum("...l,...lm->...m", np.maximum(weights, 0.0), probabilities)
    mixed: Floats = np.einsum("...l,...lm->...m", weights, probabilities)
    # In place: with many actions, reading and writing memory is what costs.
    added *= ROUNDING
    mixed[mixed <= added] = 0.0
    return mixed


def mixture_of_one(probabilities: Floats, weights: Floats, forget: bool) -> Floats:
    """``mixture`` of one row, ``[L, M]`` and ``[L]`` give ``[M]``, in fewer steps."""
    mixed = np.dot(weights, probabilities)
    added = np.dot(np.maximum(weights, 0.0), probabilities)
    mass: Floats = np.where(mixed > ROUNDING * added, mixed, 0.0)
    total = np.add.reduce(mass)
    if forget or total == 0:
        return np.full(len(mass), 1 / len(mass))
    mass *= 1 / total
    return mass


def ends(table: Table, lowest: float | Floats, highest: float | Floats) -> Floats:
    """Weights ``[..., L]`` on the lowest and the highest level alone."""
    weights = np.zeros_like(table.prior)
    weights[..., 0] = lowest
    weights[..., -1] = highest
    return weights


def unseen(table: Table, weights: Floats) -> Booleans:
    """Where a level that carries weight was never observed: ``[..., L] -> [...]``."""
    missing: Booleans = ((weights != 0) & (table.prior == 0)).any(axis=-1)
    return missing


def normalized(mass: Floats, forget: Booleans | None = None) -> Floats:
    """Divide by the sum over the last axis; uniform where it is zero or ``forget [...]`` is set.

    >>> normalized(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    mass, total = with_total(mass, forget)
    result: Floats = mass * (1 / total)
    return result


def with_total(mass: Floats, forget: Booleans | None = None) -> tuple[Floats, Floats]:
    """The mass and its sum over the last axis, ``[..., 1]``; all ones where the sum is zero."""
    total = mass.sum(axis=-1, keepdims=True)
    empty = total == 0
    if forget is not None:
        empty |= forget[..., None]
    if np.count_nonzero(empty):
        mass, total = np.where(empty, 1.0, mass), np.where(empty, mass.shape[-1], total)
    return mass, total
