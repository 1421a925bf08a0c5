"""Fitting of prior variances and noise by marginal likelihood."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.models.regression.posterior import FeatureRows, Posterior, times
from submax.models.regression.prior import KINDS, OWN, Prior, PriorStructure
from submax.models.regression.sums import Sums

LARGEST_STEP = 100.0
"""Largest factor by which a variance changes in one step, so that a step cannot overshoot far."""
RANGE = 1e8
"""Fitted variances stay within this factor of the variance of the rewards."""
LEAST_NOISE = 1e-4
"""Smallest noise variance, as a share of the variance of the rewards."""
EXPECTED_SHARE = 0.003
"""Every variance is fitted as if one more component had been observed, whose square is this share
of the variance of the rewards. Without it the variance of a few components, such as the constants
of a handful of actions, often becomes zero by chance and stays there."""


class CoefficientMoments(NamedTuple):
    """Sums over the components of the coefficients, ``[groups, kinds]``, and over the rows.

    ``squares`` are the squared posterior means and ``variances`` the posterior variances, both
    relative to the prior variance of the kind ``OWN``. ``residual`` is the sum of squared residuals
    at the posterior mean, and ``used`` the effective number of fitted parameters.
    """

    squares: Floats
    variances: Floats
    residual: float
    used: float


def fitted(
    sums: Sums,
    structure: PriorStructure,
    prior: Prior,
    centre: float,
    steps: int,
    inverse: Floats | None = None,
    least_noise: float = 0.0,
    rows: FeatureRows | None = None,
) -> Posterior:
    """Return the posterior after improving the prior by ``steps`` fixed-point steps.

    If the ``inverse`` under the given prior is known, it can be passed, and so can the ``rows`` of
    the sums; see `Posterior.of`. The fitted noise variance is at least ``least_noise``.

    A step sets each variance to (s + Σ E[θ]²) / (1 + γ). Here γ = Σ (1 − Var[θ] / prior variance)
    is the number of components that the data determine, and s is 0.003 times the variance of the
    rewards. The noise becomes the sum of squared residuals, divided by the weight of the rows minus
    the sum of all γ. At a fixed point the derivatives of the marginal likelihood, times an inverse
    gamma density of each variance, are zero.

    Reference: MacKay (1992), Bayesian interpolation.
    """
    found = Posterior.of(sums, structure, prior, centre, inverse, rows)
    for _ in range(steps):
        prior = _improved(found, sums.variance, least_noise)
        found = Posterior.of(sums, structure, prior, centre, rows=rows)
    return found


def moments_of(posterior: Posterior) -> CoefficientMoments:
    """Return the moments from which the prior is fitted."""
    structure, inverse, mean = posterior.structure, posterior.inverse, posterior.mean
    own = inverse.diagonal()
    # tr(G · covariance) with G = A − I.
    used = mean.size - own.sum()
    spread = np.zeros((0, mean.shape[1]))
    if len(posterior.coupling):
        # The variances along the directions are the diagonal of T + T Q⁻¹ T with T = Uᵀ A⁻¹ U.
        along, coupling = structure.projected(inverse.weighted_sum), posterior.coupling
        spread = np.diag(along) + np.einsum("ij,ij->i", along @ coupling, along)
        spread = spread.reshape(-1, mean.shape[1])
        taken = inverse.sandwiched(_blocks(posterior))
        own += taken
        used += np.vdot(along, coupling) - taken.sum()
    projected = structure.directions.T @ mean
    squares = np.zeros((len(posterior.prior.variance), KINDS))
    variances = np.zeros_like(squares)
    kinds = np.concatenate([[OWN], structure.kinds])
    square_rows = np.vstack([(mean**2).sum(axis=0) - (projected**2).sum(axis=0), projected**2])
    variance_rows = np.vstack([own - spread.sum(axis=0), spread])
    for kind, square, variance in zip(kinds, square_rows, variance_rows, strict=True):
        squares[:, kind] += np.bincount(structure.groups, square, len(squares))
        variances[:, kind] += np.bincount(structure.groups, variance, len(squares))
    theta = posterior.coefficients
    fit = float(np.sum(theta * times(posterior.sums.gram, theta)))
    residual = posterior.square - 2 * posterior.explained * posterior.prior.noise + fit
    return CoefficientMoments(squares, variances, max(residual, 0.0), float(used))


def _blocks(posterior: Posterior) -> Callable[[int], Floats]:
    """Return a function that returns u_kᵀ Q⁻¹ u_k of a regression k: ``[F, F]``."""
    directions, features = posterior.structure.directions, posterior.mean.shape[1]
    count = directions.shape[1]
    blocks = posterior.coupling.reshape(count, features, count, features).swapaxes(1, 2)
    flat = blocks.reshape(count * count, features * features)
    if count == 1 and np.ptp(directions) == 0:
        alike: Floats = directions[0] ** 2 * posterior.coupling
        return lambda number: alike

    def block(number: int) -> Floats:
        pairs = np.outer(directions[number], directions[number]).reshape(1, -1)
        found: Floats = (pairs @ flat).reshape(features, features)
        return found

    return block


def _improved(posterior: Posterior, reward_variance: float, least_noise: float) -> Prior:
    if reward_variance <= 0:
        # Equal rewards carry no information about the prior. They occur with a discount, too.
        return posterior.prior
    moments, prior = moments_of(posterior), posterior.prior
    dimensions = posterior.structure.dimensions(len(prior.variance))
    ratio = prior.variance / prior.variance[:, OWN, None]
    determined = np.maximum(dimensions - moments.variances / ratio, 0.0)
    squares = moments.squares * prior.variance[:, OWN, None] + EXPECTED_SHARE * reward_variance
    factor = np.where(dimensions > 0, squares / (1 + determined) / prior.variance, 1.0)
    variance = prior.variance * np.clip(factor, 1 / LARGEST_STEP, LARGEST_STEP)
    variance = np.clip(variance, reward_variance / RANGE, reward_variance * RANGE)
    left = max(posterior.weight - moments.used, 0.1 * posterior.weight)
    noise = max(moments.residual / left, LEAST_NOISE * reward_variance, least_noise)
    return Prior(noise, variance)
