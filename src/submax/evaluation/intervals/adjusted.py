"""Terms that are adjusted by covariates which were measured before the decisions."""

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.contracts.terms import Terms

SMALLEST_EIGENVALUE = 1e-10
"""Relative size below which a direction of the controls is taken to be empty."""


def adjusted(
    terms: Terms, weight: Floats, covariates: Floats, sampling_weight: Floats | None = None
) -> Terms:
    """Return the terms t_i − θ · z_i, with controls z_i = (w_i − 1) (1, x_i).

    x_i are ``covariates [n, C]`` that were known before the decision, such as the visits of the
    week before. Weights of a policy have the mean 1 given x, so that E[z] = 0 and the adjustment
    does not change the expectation, up to order 1/n; θ is the regression of the terms on z, which
    removes the part of the noise that x explains. For the difference of two policies this is CUPED.
    If the log is a sample, z_i is multiplied by the ``sampling_weight`` of the row.

    Reference: Deng, Xu, Kohavi and Walker (2013), Improving the sensitivity of online controlled
    experiments by utilizing pre-experiment data.
    """
    influence, counts = terms.influence(), terms.counts
    share = np.full(len(influence), 1 / len(influence)) if counts is None else counts / counts.sum()
    centred = covariates - share @ covariates
    spread = np.sqrt(share @ centred**2)
    standardized = centred / np.where(spread > 0, spread, 1.0)
    controls = (weight - 1)[:, None] * np.column_stack([np.ones(len(weight)), standardized])
    if sampling_weight is not None:
        controls *= (sampling_weight / (share @ sampling_weight))[:, None]
    distance = controls - share @ controls
    gram = distance.T @ (share[:, None] * distance)
    moment = distance.T @ (share * (influence - share @ influence))
    theta = np.linalg.pinv(gram, rcond=SMALLEST_EIGENVALUE, hermitian=True) @ moment
    change = -controls @ theta
    reach = terms.reach
    if reach is not None:
        reach = (reach[0] + float(change.min()), reach[1] + float(change.max()))
    plain = terms.without_threshold
    return Terms(
        influence + change,
        None,
        reach,
        terms.threshold,
        None if plain is None else adjusted(plain, weight, covariates, sampling_weight),
        counts,
    )
