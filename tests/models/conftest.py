"""Rows for regressions, and the same posterior from one dense Gaussian distribution."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from submax.models.regression.bayesian import OWN, Posterior, Prior, PriorStructure, Sums

GROUPS = np.array([0, 1, 1, 2, 2, 2])
POSITIVE = np.array([[0.5, 3.0, 2.0], [1.0, 4.0, 1.5], [0.3, 2.0, 0.9]])
NEGATIVE = np.array([[0.5, 0.01, 0.1], [1.0, 1e-4, 0.3], [0.3, 0.02, 0.05]])


class Case(NamedTuple):
    """Rows with whole-numbered weights, and what is believed before them."""

    features: Any
    number: Any
    reward: Any
    weight: Any
    structure: PriorStructure
    prior: Prior
    centre: float

    @property
    def sums(self):
        empty = Sums.empty(len(self.structure.directions), len(GROUPS), offset=0.3)
        return empty.add(self.features, self.number, self.reward, self.weight)

    @property
    def posterior(self):
        return Posterior.of(self.sums, self.structure, self.prior, self.centre)

    def dense(self):
        """Mean, covariance and log-evidence with all coefficients in one vector."""
        count, width = len(self.structure.directions), len(GROUPS)
        row = np.repeat(np.arange(len(self.reward)), self.weight.astype(int))
        matrix = np.zeros((len(row), count, width))
        matrix[np.arange(len(row)), self.number[row]] = self.features[row]
        matrix = matrix.reshape(len(row), count * width)
        noise, reward = self.prior.noise, self.reward[row] - self.centre
        before = prior_covariance(self.structure, self.prior)
        covariance = np.linalg.inv(np.linalg.inv(before) + matrix.T @ matrix / noise)
        mean = (covariance @ matrix.T @ reward / noise).reshape(count, width)
        marginal = matrix @ before @ matrix.T + noise * np.eye(len(row))
        evidence = stats.multivariate_normal(np.zeros(len(row)), marginal).logpdf(reward)
        return mean, covariance, float(evidence)


def prior_covariance(structure, prior):
    """Feature by feature, from the regressions' own variance and that of each direction."""
    count, width = len(structure.directions), len(structure.groups)
    found = np.zeros((count, width, count, width))
    directions = structure.directions
    for feature, group in enumerate(structure.groups):
        variance = prior.variance[group]
        added = np.diag(variance[structure.kinds] - variance[OWN])
        block = variance[OWN] * np.eye(count) + directions @ added @ directions.T
        found[:, feature, :, feature] = block
    return found.reshape(count * width, count * width)


def case_of(seed, regressions, described, variance, shared=True, rows=70):
    rng = np.random.default_rng((seed, 11))
    features = np.concatenate([np.ones((rows, 1)), rng.normal(size=(rows, 5))], axis=1)
    # The last regression has no rows unless it is the only one.
    number = rng.integers(max(regressions - 1, 1), size=rows)
    slope = rng.normal(size=(regressions, 6))
    reward = np.sum(features * slope[number], axis=1) + rng.normal(size=rows)
    weight = rng.integers(1, 4, size=rows).astype(np.float64)
    alike = rng.normal(size=(regressions, described)) if described else None
    structure = PriorStructure.sharing(GROUPS, regressions, alike)
    if not shared:
        structure = PriorStructure.independent(GROUPS, regressions)
    return Case(features, number, reward, weight, structure, Prior(0.7, variance), 0.2)


CASES = {
    "positive": (4, 0, POSITIVE),
    "negative": (4, 0, NEGATIVE),
    "alike": (5, 2, POSITIVE),
    "alike, negative": (4, 2, NEGATIVE),
    "as many directions as regressions": (2, 1, POSITIVE),
    "one regression": (1, 0, POSITIVE),
    "independent": (3, 0, POSITIVE, False),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request, seed):
    return case_of(seed, *request.param)


@pytest.fixture
def shared_case(seed):
    """Four regressions of which each has many rows."""
    made = case_of(seed, 4, 0, POSITIVE, rows=400)
    rng = np.random.default_rng((seed, 12))
    number = rng.integers(4, size=400)
    slope = 1.0 + rng.normal(size=(4, 6))
    noise = rng.normal(size=400)
    reward = np.sum(made.features * slope[number], axis=1) + noise
    return made._replace(number=number, reward=reward)
