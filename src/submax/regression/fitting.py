"""Prior variances and noise fitted by marginal likelihood."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.regression.posterior import Posterior, along, times
from submax.regression.prior import KINDS, OWN, Prior, PriorStructure
from submax.regression.sums import Sums

LARGEST_STEP = 100.0
"""A variance changes at most by this factor in one step."""
RANGE = 1e8
"""Variances stay within this factor of the variance of the rewards."""
LEAST_NOISE = 1e-4
"""The noise has at least this share of the variance of the rewards."""


EXPECTED_SHARE = 0.003
"""Every variance is fitted as if one more component had been observed whose square is this share of
the variance of the rewards. Without it the variance of few components, such as the constants of a
handful of actions, often falls to zero by chance and stays there."""


class Moments(NamedTuple):
    """Posterior moments of components of coefficients, summed, ``[groups, kinds]``.

    ``squares`` of their means and ``variances`` are in units of the prior variance of a
    regression's own coefficients; ``residual`` is the sum of squared residuals at the posterior
    mean, and ``used`` the number of rows that the coefficients took up.
    """

    squares: Floats
    variances: Floats
    residual: float
    used: float


def fitted(
    sums: Sums,
    design: PriorStructure,
    prior: Prior,
    centre: float,
    steps: int,
    inverse: Floats | None = None,
) -> Posterior:
    """The posterior under the prior that ``steps`` fixed-point steps lead to.

    The ``inverse`` under the given prior need not be computed if it is known; see `Posterior.of`.

    A step sets each variance to (s + Σ E[θ]²) / (1 + γ) with γ = Σ (1 − Var[θ] / prior variance),
    the number of components that the data determine, and s = 0.003 times the variance of the
    rewards, and the noise to the squared residuals divided by the weight of the rows less all γ.
    Where the steps end, the derivatives of the marginal likelihood times the density of an inverse
    gamma distribution of each variance are zero.

    Reference: MacKay (1992), Bayesian interpolation.
    """
    found = Posterior.of(sums, design, prior, centre, inverse)
    for _ in range(steps):
        prior = _improved(found, sums.variance)
        found = Posterior.of(sums, design, prior, centre)
    return found


def gradient(posterior: Posterior) -> tuple[float, Floats]:
    """Derivatives of the log-evidence by the logarithms of the noise and of each variance."""
    moments = moments_of(posterior)
    groups = len(posterior.prior.variance)
    dimensions = np.array([posterior.design.dimensions(group) for group in range(groups)])
    ratio = posterior.prior.variance / posterior.prior.variance[:, OWN, None]
    by_variance = ((moments.squares + moments.variances) / ratio - dimensions) / 2
    left = moments.residual / posterior.prior.noise + moments.used
    return (left - posterior.weight) / 2, by_variance


def moments_of(posterior: Posterior) -> Moments:
    """The moments by which the prior is fitted."""
    design, inverse, mean = posterior.design, posterior.inverse, posterior.mean
    own = np.einsum("kff->kf", inverse).sum(axis=0)
    # tr(G covariance) with G = A − I: what part of the residuals the coefficients took up.
    used = inverse.shape[0] * inverse.shape[1] - own.sum()
    spread = _along_variance(posterior)
    if len(posterior.coupling):
        product = _coupled(posterior)
        taken = np.einsum("kfg,kfg->f", product, inverse)
        own += taken
        used += np.einsum("kff->", product) - taken.sum()
    projected = design.directions.T @ mean
    squares = np.zeros((len(posterior.prior.variance), KINDS))
    variances = np.zeros_like(squares)
    kinds = np.concatenate([[OWN], design.kinds])
    square_rows = np.vstack([(mean**2).sum(axis=0) - (projected**2).sum(axis=0), projected**2])
    variance_rows = np.vstack([own - spread.sum(axis=0), spread])
    for kind, square, variance in zip(kinds, square_rows, variance_rows, strict=True):
        squares[:, kind] += np.bincount(design.groups, square, len(squares))
        variances[:, kind] += np.bincount(design.groups, variance, len(squares))
    fit = float(np.sum(mean * times(posterior.gram, mean)))
    residual = posterior.square - (2 * posterior.explained - fit) * posterior.prior.noise
    return Moments(squares, variances, max(residual, 0.0), float(used))


def _along_variance(posterior: Posterior) -> Floats:
    """Variances of the components along the directions, the diagonal of T + T Q⁻¹ T, ``[q, F]``.

    T = Uᵀ A⁻¹ U.
    """
    alone = along(posterior.design, posterior.inverse)
    variance: Floats = np.diag(alone) + np.einsum("ij,ij->i", alone @ posterior.coupling, alone)
    return variance.reshape(-1, posterior.mean.shape[1])


def _coupled(posterior: Posterior) -> Floats:
    """A_k⁻¹ (u_kᵀ Q⁻¹ u_k) for each regression: ``[K, F, F]``."""
    directions, features = posterior.design.directions, posterior.mean.shape[1]
    count = directions.shape[1]
    if count == 1:
        return directions[:, :1, None] ** 2 * (posterior.inverse @ posterior.coupling)
    blocks = posterior.coupling.reshape(count, features, count, features).swapaxes(1, 2)
    pairs = directions[:, :, None] * directions[:, None, :]
    mixed = np.tensordot(pairs.reshape(len(pairs), -1), blocks.reshape(-1, features, features), 1)
    return posterior.inverse @ mixed


def _improved(posterior: Posterior, reward_variance: float) -> Prior:
    if reward_variance <= 0:
        # Rewards that do not differ, as when all others have faded, say nothing about the prior.
        return posterior.prior
    moments, prior = moments_of(posterior), posterior.prior
    groups = len(prior.variance)
    dimensions = np.array([posterior.design.dimensions(group) for group in range(groups)])
    ratio = prior.variance / prior.variance[:, OWN, None]
    determined = np.maximum(dimensions - moments.variances / ratio, 0.0)
    squares = moments.squares * prior.variance[:, OWN, None] + EXPECTED_SHARE * reward_variance
    factor = np.where(dimensions > 0, squares / (1 + determined) / prior.variance, 1.0)
    variance = prior.variance * np.clip(factor, 1 / LARGEST_STEP, LARGEST_STEP)
    variance = np.clip(variance, reward_variance / RANGE, reward_variance * RANGE)
    left = max(posterior.weight - moments.used, 0.1 * posterior.weight)
    noise = max(moments.residual / left, LEAST_NOISE * reward_variance)
    return Prior(noise, variance)
