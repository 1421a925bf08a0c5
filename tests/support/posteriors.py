"""What a posterior of regressions says of features."""

import numpy as np


def variance_of(posterior, features):
    """The posterior variance of φ·θ_k, by solving for each feature: ``[n, F] -> [n, K]``."""
    scaled, regressions = features * posterior.covariance.unit, len(posterior.mean)
    columns = []
    for number in range(regressions):
        response = np.zeros((len(features), *posterior.mean.shape))
        response[:, number] = scaled
        solved = posterior.covariance.applied(posterior.structure, response)
        columns.append(np.sum(solved[:, number] * scaled, axis=1))
    return np.stack(columns, axis=1)
