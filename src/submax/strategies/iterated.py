"""Iterated SubMax."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import Count
from submax.core.conditioning import SUM_TOLERANCE, Strategy, Table, ends, normalized, unseen

_ZERO = np.zeros(())
"""A zero as an array, so numpy does not convert a number at every decision."""


@dataclass(frozen=True)
class Iterated(Strategy):
    """Several steps of policy improvement in the place of SubMax's one.

    π_{k+1}(a) ∝ π_k(a) max(v(a) − Σ_b π_k(b) v(b), 0) for ``depth`` steps, from the marginal
    π_0(a) = Σ_l prior_l π(a | l), with the value v(a) = Σ_l level_l prior_l π(a | l) / π_0(a).
    With two levels and depth 1 this is SubMax, if some action is better than the average. A step
    that would leave no action is not taken.

    It is meant for long delays, for which one step in each update is too little. More steps are
    greedier and can cost regret with short delays: for 10 arms, Beta(1, 1) and batches of 100 it
    is 1.58 times that of the best classic policy with depth 2, and 1.20 times with depth 1
    (docs/research/scores.csv). Not in the paper.
    """

    depth: Count = 2

    def probabilities(self, table: Table) -> Floats:
        marginal = np.einsum("...l,...lm->...m", table.prior, table.probabilities)
        # Rewards are measured from the lowest level: the advantages are the same, and no digits
        # cancel.
        paid = table.prior * (table.levels - table.levels[..., :1])
        earned = np.einsum("...l,...lm->...m", paid, table.probabilities)
        value = earned / np.where(marginal > 0, marginal, 1.0)
        mass = marginal
        for _ in range(self.depth):
            mass = improved(normalized(mass), value)
        return normalized(mass, forget=unseen(table, ends(table, -1.0, 1.0)))


def improved(policy: Floats, value: Floats) -> Floats:
    """Return ``policy`` improved by one step with the ``value`` of actions, not normalized.

    If no action is better than the average, up to rounding errors, the policy does not change.
    """
    mean = np.einsum("...m,...m->...", policy, value)[..., None]
    # A value that is above the mean only by a rounding error is not above it.
    mass = policy * np.maximum(value - mean * (1 + SUM_TOLERANCE), 0.0)
    left = mass.any(axis=-1, keepdims=True)
    return mass if left.all() else np.where(left, mass, policy)


def submax_of(value: Floats, depth: int) -> Floats:
    """Apply SubMax ``depth`` times to the values of actions, from the uniform policy.

    ``value [..., M]`` gives ``[..., M]``. If all values are equal up to rounding errors, the policy
    is uniform.

    >>> submax_of(np.array([0.0, 1.0, 2.0, 5.0]), 1).round(3).tolist()
    [0.0, 0.0, 0.0, 1.0]
    >>> submax_of(np.array([0.0, 4.0, 5.0, 5.0]), 1).round(3).tolist()
    [0.0, 0.143, 0.429, 0.429]
    """
    size = value.shape[-1]
    above = value - value.sum(axis=-1, keepdims=True) / size
    policy = np.maximum(above, 0.0)
    total = policy.sum(axis=-1, keepdims=True)
    equal = total <= size * SUM_TOLERANCE * np.abs(value).max(axis=-1, keepdims=True)
    if equal.any():
        policy = np.where(equal, 1.0, policy)
        total = np.where(equal, float(size), total)
    policy /= total
    for _ in range(depth - 1):
        mean = (policy * above).sum(axis=-1, keepdims=True)
        gain = policy * np.maximum(above - mean * (1 + SUM_TOLERANCE), 0.0)
        total = gain.sum(axis=-1, keepdims=True)
        # A policy without a better action does not change.
        policy = np.where(total > 0, gain / np.where(total > 0, total, 1.0), policy)
    return policy


def mean_submax_of(contrasts: Floats, depth: int) -> Floats:
    """Return the mean of ``submax_of`` over the rows of tables, ``[..., P, M] -> [..., M]``.

    The mean of each row must be 0. For the latency of a single decision this form uses few calls of
    numpy, and products instead of sums. Masses are not normalized between steps, so the contrasts
    must be between about 1e-150 and 1e150 for two steps.
    """
    *tables, rows, size = contrasts.shape
    above, ones = contrasts.reshape(-1, size), _ones(size)
    mass = np.maximum(above, _ZERO)
    total = mass.dot(ones)
    if np.count_nonzero(total) < len(total):
        # In some row all actions are equal.
        return submax_of(contrasts, depth).mean(axis=-2)
    for _ in range(depth - 1):
        mean = (mass * above).dot(ones)
        mean *= 1 + SUM_TOLERANCE
        mean /= total
        gain = np.maximum(above - mean[:, None], _ZERO)
        gain *= mass
        gained = gain.dot(ones)
        if np.count_nonzero(gained) < len(gained):
            # A policy without a better action does not change.
            stays = gained == 0
            np.copyto(gain, mass, where=stays[:, None])
            np.copyto(gained, total, where=stays)
        mass, total = gain, gained
    share = 1.0 / (rows * total)
    if not tables:
        return share.dot(mass)
    return (share.reshape(*tables, 1, rows) @ mass.reshape(contrasts.shape))[..., 0, :]


@cache
def _ones(size: int) -> Floats:
    """Return a vector of ones: for few numbers, a product with it is faster than a sum."""
    ones = np.ones(size)
    ones.flags.writeable = False
    return ones
