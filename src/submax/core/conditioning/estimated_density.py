"""The log-probability of a clipped mixture whose normalizing constant is not known."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.core.conditioning.marginalization import clipped

DRAWS = 2000
"""Proposals from which the constant is estimated, at each level that proposes."""
AT_ONCE = 250
"""So many of them are looked at together."""


class EstimatedDensity(NamedTuple):
    """``log_prob [R, n, M]`` and its standard ``error [R, n]``.

    ``known [R, n]`` is False where no mass was found.

    A probability, or a density where the actions are real-valued. Where nothing is known, both
    mean nothing.
    """

    log_prob: Floats
    error: Floats
    known: Booleans


def estimated_density(
    weights: Floats, belief: ConditionalDistribution, action: Actions
) -> EstimatedDensity:
    """Estimate log max(Σ_l w_l π(a | l), 0) − log M, with M the sum, or integral, over all a.

    M = Σ_l w_l⁺ E_l[share(a)], with E_l over actions drawn at level l and share(a) what is left of
    the positive part there, between 0 and 1: the mean over ``DRAWS`` draws from a generator
    that always begins alike. Its standard error over M is that of the logarithm. ``weights [R, n,
    L]``, ``action [R, n, M, S]``.
    """
    rng = np.random.default_rng(0)
    positive = np.maximum(weights, 0.0)
    mass, variance = np.zeros(weights.shape[:2]), np.zeros(weights.shape[:2])
    for level in np.flatnonzero(positive.any(axis=(0, 1))):
        shares = [
            _share(weights, belief.prob(belief.sample(int(level), AT_ONCE, rng)))
            for _ in range(DRAWS // AT_ONCE)
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
    """What the negative weights leave of the positive part: ``[R, n, L, M] -> [R, n, M]``."""
    proposed = np.einsum("rnl,rnlm->rnm", np.maximum(weights, 0.0), probabilities)
    share: Floats = clipped(weights, probabilities) / np.where(proposed > 0, proposed, 1.0)
    return share
