"""Iterated SubMax."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import whole_number
from submax.core.conditioning.marginalization import ROUNDING, ends, normalized, unseen
from submax.core.conditioning.strategy import Strategy
from submax.core.conditioning.table import Table

_ZERO = np.zeros(())
"""As an array, which numpy need not make for every decision."""


@dataclass(frozen=True)
class Iterated(Strategy):
    """Several steps of policy improvement where SubMax takes one.

    π_{k+1}(a) ∝ π_k(a) max(v(a) − Σ_b π_k(b) v(b), 0) for ``depth`` steps, from the marginal
    π_0(a) = Σ_l prior_l π(a | l), with the value v(a) = Σ_l level_l prior_l π(a | l) / π_0(a).
    With two levels depth 1 is SubMax, wherever some action is better than the average. A step that
    would leave no action keeps the policy it has.

    It is meant for long delays, where one step for each refit is too little; at a depth of 3 and
    more it can settle on a poor arm.
    """

    depth: int = 2

    def __post_init__(self) -> None:
        whole_number("depth", self.depth, at_least=1)

    def probabilities(self, table: Table) -> Floats:
        """Improve the marginal ``depth`` times."""
        marginal = np.einsum("...l,...lm->...m", table.prior, table.probabilities)
        # Counted from the lowest level: the advantage is the same, and nothing cancels.
        paid = table.prior * (table.levels - table.levels[..., :1])
        earned = np.einsum("...l,...lm->...m", paid, table.probabilities)
        value = earned / np.where(marginal > 0, marginal, 1.0)
        mass = marginal
        for _ in range(self.depth):
            mass = improved(normalized(mass), value)
        return normalized(mass, forget=unseen(table, ends(table, -1.0, 1.0)))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """One step, the default and a deep one."""
        for depth in (1, 2, 5):
            yield cls(depth)


def improved(policy: Floats, value: Floats) -> Floats:
    """One step of policy improvement from ``policy`` by the ``value`` of actions, not normalized.

    Where no action is better than the average by more than rounding, the policy stays.
    """
    mean = np.einsum("...m,...m->...", policy, value)[..., None]
    # What is above the mean by rounding alone is not above it.
    mass = policy * np.maximum(value - mean * (1 + ROUNDING), 0.0)
    left = mass.any(axis=-1, keepdims=True)
    return mass if left.all() else np.where(left, mass, policy)


def submax_of(value: Floats, depth: int) -> Floats:
    """SubMax applied ``depth`` times, from the uniform policy, to the values of actions.

    ``value [..., M]`` gives ``[..., M]``. If all actions are equal but for rounding, all have the
    same probability.

    >>> submax_of(np.array([0.0, 1.0, 2.0, 5.0]), 1).round(3).tolist()
    [0.0, 0.0, 0.0, 1.0]
    >>> submax_of(np.array([0.0, 4.0, 5.0, 5.0]), 1).round(3).tolist()
    [0.0, 0.143, 0.429, 0.429]
    """
    size = value.shape[-1]
    above = value - value.sum(axis=-1, keepdims=True) / size
    policy = np.maximum(above, 0.0)
    total = policy.sum(axis=-1, keepdims=True)
    equal = total <= size * ROUNDING * np.abs(value).max(axis=-1, keepdims=True)
    if equal.any():
        policy = np.where(equal, 1.0, policy)
        total = np.where(equal, float(size), total)
    policy /= total
    for _ in range(depth - 1):
        mean = (policy * above).sum(axis=-1, keepdims=True)
        gain = policy * np.maximum(above - mean * (1 + ROUNDING), 0.0)
        total = gain.sum(axis=-1, keepdims=True)
        # A policy that has no better action left stays.
        policy = np.where(total > 0, gain / np.where(total > 0, total, 1.0), policy)
    result: Floats = policy
    return result


def mean_submax_of(contrasts: Floats, depth: int) -> Floats:
    """The mean of ``submax_of`` over the rows of one table, ``[P, M] -> [M]``, in few steps.

    The mean of each row must be 0. A decision that is taken alone consists of little else than
    calls of numpy, so that it counts how many there are.
    """
    rows, size = contrasts.shape
    ones = _ones(size)
    mass = np.maximum(contrasts, _ZERO)
    total = mass.dot(ones)
    if np.count_nonzero(total) < rows:
        # In some row all actions are equal.
        return _row_mean(submax_of(contrasts, depth))
    for _ in range(depth - 1):
        mean = (mass * contrasts).dot(ones)
        mean *= 1 + ROUNDING
        mean /= total
        gain = np.maximum(contrasts - mean[:, None], _ZERO)
        gain *= mass
        gained = gain.dot(ones)
        if np.count_nonzero(gained) < rows:
            # A policy that has no better action left stays.
            stays = gained == 0
            gain[stays], gained[stays] = mass[stays], total[stays]
        mass, total = gain, gained
    mixed: Floats = (1.0 / (rows * total)).dot(mass)
    return mixed


@cache
def _ones(size: int) -> Floats:
    """A product with ones is a sum, and takes less time for a few numbers."""
    ones = np.ones(size)
    ones.flags.writeable = False
    return ones


def _row_mean(policies: Floats) -> Floats:
    mean: Floats = policies.mean(axis=0)
    return mean
