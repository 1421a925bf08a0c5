"""The log-probability of a clipped mixture whose normalizing constant must be estimated."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.core.conditioning.marginalization import clipped

DRAWS = 2000
"""Draws at each level with positive weight, from which the normalizing constant is estimated."""
DRAWS_PER_PART = 250
"""Draws that are held in memory at a time."""


class EstimatedDensity(NamedTuple):
    """``log_prob [R, n, M]`` and its standard ``error [R, n]``.

    ``log_prob`` is a log-probability, or a log-density if actions are real-valued. ``known [R, n]``
    is False if no draw had a positive mass; then the other two must not be used.
    """

    log_prob: Floats
    error: Floats
    known: Booleans


def estimated_density(
    weights: Floats, belief: ConditionalDistribution, action: Actions
) -> EstimatedDensity:
    """Estimate log max(Σ_l w_l π(a | l), 0) − log M, with M the sum, or integral, over all a.

    The normalizing constant is M = Σ_l w_l⁺ E_l[share(a)]. E_l is the expectation over actions
    drawn at level l, and share(a), between 0 and 1, is the part of Σ_l w_l⁺ π(a | l) that the
    negative weights leave. E_l is estimated by the mean over ``DRAWS`` draws from a generator with
    a fixed seed, so that the same question has the same answer. The standard error of the logarithm
    is that of M divided by M. ``weights [R, n, L]``, ``action [R, n, M, S]``.
    """
    rng = np.random.default_rng(0)
    positive = np.maximum(weights, 0.0)
    mass, variance = np.zeros(weights.shape[:2]), np.zeros(weights.shape[:2])
    for level in np.flatnonzero(positive.any(axis=(0, 1))):
        shares = [
            _share(weights, belief.prob(belief.sample(int(level), DRAWS_PER_PART, rng)))
            for _ in range(DRAWS // DRAWS_PER_PART)
        ]
        share = np.concatenate(shares, axis=-1)
        mass += positive[..., level] * share.mean(axis=-1)
        variance += positive[..., level] ** 2 * share.var(axis=-1) / DRAWS
    known = mass > 0
    whole = np.where(known, mass, 1.0)
    own = clipped(weights, belief.prob(action))
    with np.errstate(divide="ignore"):
        log_prob = np.log(own) - np.log(whole)[..., None]
    return EstimatedDensity(log_prob, np.sqrt(variance) / whole, known)


def _share(weights: Floats, probabilities: Floats) -> Floats:
    """Return share(a), see ``estimated_density``: ``[R, n, L, M] -> [R, n, M]``."""
    proposed = np.einsum("rnl,rnlm->rnm", np.maximum(weights, 0.0), probabilities)
    share: Floats = clipped(weights, probabilities) / np.where(proposed > 0, proposed, 1.0)
    return share
