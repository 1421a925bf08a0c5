"""What a posterior of regressions says of features."""

import numpy as np


def variance_of(posterior, features, shares=None):
    """The posterior variance of φ·Σ_k s_k θ_k, by solving for each row s of shares: ``[n, K]``.

    By default each row is that of one regression.
    """
    scaled, regressions = features * posterior.covariance.unit, len(posterior.mean)
    columns = []
    for row in np.eye(regressions) if shares is None else shares:
        response = row[:, None] * scaled[:, None]
        solved = posterior.covariance.applied(posterior.structure, response)
        columns.append(np.sum(solved * response, axis=(1, 2)))
    return np.stack(columns, axis=1)
