"""Features of a context: standardized numbers and kernels around landmarks."""

import math
from typing import NamedTuple, Self

import numpy as np
import scipy
from numpy.random import Generator

from submax.core.arrays import Floats, Integers
from submax.core.serialization import serializable

NEAREST_SHARE = 0.9
"""The usual distance from the median is the mean over this share of the rows, the nearest ones."""
LARGEST_DISTANCE = 20.0
"""For mean and deviation, values are clipped at this many usual distances from the median. None of
a million normal numbers is as far away, while one age of 1e6 among 100 would hide all others."""
LEAST_DEVIATION = 1e-9
"""A number whose deviation is below this share of its largest value counts as constant."""
FARTHEST = 10.0
"""Standardized numbers are clipped at this many deviations from their mean."""
_LOWEST, _HIGHEST = np.array(-FARTHEST), np.array(FARTHEST)
"""The same limits as arrays, so numpy need not convert them at every decision."""


def standardized(
    context: Floats, shift: Floats, scale: Floats, out: Floats | None = None
) -> Floats:
    """Return z = (context − shift) · scale, clipped at ±10, in ``out`` if that is given."""
    z: Floats = np.subtract(context, shift, out=out)
    np.multiply(z, scale, out=z)
    np.minimum(np.maximum(z, _LOWEST, out=z), _HIGHEST, out=z)
    return z


def standardization(context: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the mean of each number, and 1 / its deviation, or 0 if the number is constant."""
    if not len(context):
        return np.zeros(context.shape[1]), np.zeros(context.shape[1])
    share = weight / weight.sum()
    # Outliers are clipped at a distance from the median.
    median = _mean_of_lowest(context, share, 0.5)[1]
    with np.errstate(over="ignore"):
        # Distances that overflow count as the largest float.
        distance = np.minimum(np.abs(context - median), np.finfo(np.float64).max)
        most = LARGEST_DISTANCE * _mean_of_lowest(distance, share, NEAREST_SHARE)[0]
        # If nearly all values are equal, as for a rare category, the others are not outliers.
        most = np.where(most > 0, most, np.inf)
        usual = np.clip(context, median - most, median + most)
    # Relative to the largest value, squares neither overflow nor underflow.
    largest = np.maximum(np.abs(usual).max(axis=0, initial=0.0), 1e-300)
    mean = share @ (usual / largest)
    deviation = np.sqrt(share @ (usual / largest - mean) ** 2)
    varies = deviation > LEAST_DEVIATION
    scale = np.where(varies, 1.0 / (np.where(varies, deviation, 1.0) * largest), 0.0)
    return mean * largest, scale


def _mean_of_lowest(values: Floats, share: Floats, part: float) -> tuple[Floats, Floats]:
    """Return the mean of the lowest ``part`` of the weight in each column, and the last value."""
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    before = np.cumsum(share[order], axis=0) - share[order]
    counted = np.clip(part - before, 0.0, share[order])
    last = np.argmax(before + share[order] >= part * (1 - 1e-12), axis=0)
    highest = np.take_along_axis(ordered, last[None], axis=0)[0]
    mean: Floats = np.einsum("nd,nd->d", counted, ordered) / part
    return mean, highest


CONSTANT, LINEAR, KERNEL = 0, 1, 2
"""The groups of features; each group has its own prior variances."""
GROUPS = 3
LINEAR_TIMES = 3
"""The numbers of a context may be up to this many times ``most`` and still all be linear features:
with the default of 288, text embeddings of 768 numbers are not projected."""
FEWEST_LANDMARKS = 48
"""Kernels beside so many linear features, or half of ``most`` if that is less."""
JITTER = 1e-6
"""Added to the diagonal of the landmarks' kernel matrix, so it stays positive definite."""
K_MEANS_STEPS = 5
"""Steps of k-means. A few are enough: the centres only have to cover the points."""


@serializable("feature-map")
class FeatureMap(NamedTuple):
    """φ(x) = (1, z / √D, W k(z)): a constant, a linear part, and kernels around landmarks.

    - z = (x − ``shift``) · ``scale`` is the standardized context, clipped at ±10; the scale of a
      constant number is 0. If the context is wide, the linear part is z · ``projection`` with a
      random matrix.
    - k_j(z) = exp(−|z · ``reach`` − landmark_j|² / 2) with reach = relevance / (``length`` √D). A
      number on which the reward depends strongly has a large relevance, and counts more for the
      distance. The ``landmarks`` are stored multiplied by the reach.
    - ``whitening`` W is the inverse Cholesky factor of the landmarks' kernel matrix. It makes
      regression on these features equal to Gaussian process regression, restricted to functions
      that the landmarks can express.
    - ``squares`` are half the squared norms of the landmarks, which every distance needs.

    Reference: Williams and Seeger (2001), Using the Nyström method to speed up kernel machines.
    """

    shift: Floats
    scale: Floats
    projection: Floats | None
    length: float
    reach: Floats
    landmarks: Floats
    whitening: Floats
    squares: Floats

    @property
    def width(self) -> int:
        return 1 + self._linear_width + len(self.landmarks)

    @property
    def groups(self) -> Integers:
        """The group of each feature, ``[F]``."""
        return np.repeat(np.arange(GROUPS), (1, self._linear_width, len(self.landmarks)))

    def rows(self, context: Floats) -> Floats:
        """Return the features φ of contexts: ``[n, D] -> [n, F]``."""
        raw = self.raw(context)
        first = 1 + self._linear_width
        raw[:, 1:first] /= self._root
        raw[:, first:] = raw[:, first:] @ self.whitening.T
        return raw

    def raw(self, context: Floats) -> Floats:
        """Return raw features (1, z, k(z)) for ``for_raw`` coefficients: ``[n, D] -> [n, F]``."""
        z = standardized(context, self.shift, self.scale)
        linear = self._linear_width
        features = np.empty((len(z), self.width))
        features[:, 0] = 1.0
        features[:, 1 : 1 + linear] = z if self.projection is None else z @ self.projection
        if len(self.landmarks):
            reached = z * self.reach
            nearness = reached @ self.landmarks.T
            nearness -= self.squares
            nearness -= 0.5 * np.einsum("nd,nd->n", reached, reached)[:, None]
            np.exp(nearness, out=features[:, 1 + linear :])
        return features

    def raw_alone(self, context: Floats) -> Floats:
        """Return the raw features of a single context, with few numpy calls: ``[D] -> [F]``."""
        if self.projection is not None:
            return self.raw(context[None])[0]
        width = len(context)
        features = np.empty(1 + width + len(self.landmarks))
        features[0] = 1.0
        z = standardized(context, self.shift, self.scale, out=features[1 : 1 + width])
        if len(self.landmarks):
            reached = z * self.reach
            nearness = self.landmarks.dot(reached)
            nearness -= self.squares
            nearness -= 0.5 * reached.dot(reached)
            np.exp(nearness, out=features[1 + width :])
        return features

    def for_raw(self, coefficients: Floats) -> Floats:
        """Convert coefficients of ``rows`` to coefficients of ``raw``: ``[..., F] -> [..., F]``."""
        first = 1 + self._linear_width
        changed = coefficients.copy()
        changed[..., 1:first] /= self._root
        changed[..., first:] = coefficients[..., first:] @ self.whitening
        return changed

    def of_length(self, length: float) -> Self:
        return self._replace(length=length).with_relevance(self.length / length)

    def with_relevance(self, factor: Floats | float) -> Self:
        """Return the map with the relevance of each number multiplied by ``factor [D]``."""
        landmarks = self.landmarks * factor
        square = 0.5 * np.einsum("md,md->m", landmarks, landmarks)
        nearness = landmarks @ landmarks.T - square[:, None] - square
        kernel: Floats = np.exp(np.minimum(nearness, 0.0))
        kernel.flat[:: len(kernel) + 1] += JITTER
        whitening = kernel
        if len(kernel):
            root = np.linalg.cholesky(kernel)
            # The transpose is what LAPACK reads without a copy: an upper triangular matrix.
            whitening = scipy.linalg.lapack.dtrtri(root.T, lower=0)[0].T
        return self._replace(
            reach=self.reach * factor, landmarks=landmarks, whitening=whitening, squares=square
        )

    def sensitivity(self, context: Floats, coefficients: Floats) -> Floats:
        """Return the mean of (∂ φ(x)·θ_k / ∂ z_d)² over contexts and regressions, ``[D]``.

        The mean of the coefficients over regressions, which favours no action, is subtracted.
        """
        own = coefficients - coefficients.mean(axis=0) if len(coefficients) > 1 else coefficients
        first = 1 + self._linear_width
        raw = self.for_raw(own)
        reached = standardized(context, self.shift, self.scale) * self.reach
        kernels, pulls = self.raw(context)[:, first:], raw[:, first:]
        # One product for all regressions: [n, m] times [m, K D].
        products = pulls.T[:, :, None] * self.landmarks[:, None]
        pulled = kernels @ products.reshape(len(products), -1)
        slope = pulled.reshape(len(context), len(raw), -1)
        slope -= (kernels @ pulls.T)[..., None] * reached[:, None]
        slope *= self.reach
        linear = raw[:, 1:first]
        slope += linear if self.projection is None else linear @ self.projection.T
        return np.mean(slope**2, axis=(0, 1))

    @property
    def _linear_width(self) -> int:
        return len(self.scale) if self.projection is None else self.projection.shape[1]

    @property
    def _root(self) -> float:
        return math.sqrt(max(len(self.scale), 1))


def new_map(
    context: Floats, weight: Floats, most: int, rng: Generator, kernels: bool = True
) -> FeatureMap:
    """Return a map with about ``most`` features and kernels of length 1, from contexts ``[n, D]``.

    All numbers of the context stay linear features, even if they are up to three times ``most``;
    there are 48 kernels at least, or half of ``most``. Wider contexts are projected at random.
    Without ``kernels`` the linear part may take up all ``most`` features.
    """
    shift, scale = standardization(context, weight)
    width = context.shape[1]
    linear = min(width, LINEAR_TIMES * most if kernels else most - 1)
    projection = None
    if linear < width:
        # The expected squared norm of the projection is the squared norm of the context.
        projection = rng.standard_normal((width, linear)) / math.sqrt(max(linear, 1))
    reach = np.full(width, max(width, 1) ** -0.5)
    blank, none = np.zeros((0, width)), np.zeros((0, 0))
    plain = FeatureMap(shift, scale, projection, 1.0, reach, blank, none, np.zeros(0))
    if not kernels or not scale.any():
        return plain
    kernels_left = max(most - 1 - linear, min(FEWEST_LANDMARKS, most // 2))
    points = standardized(context, shift, scale)
    landmarks = chosen_landmarks(points, kernels_left, rng)
    return plain._replace(landmarks=landmarks * reach).of_length(1.0)


def chosen_landmarks(points: Floats, most: int, rng: Generator) -> Floats:
    """Return the distinct points ``[n, D]``, or cluster centres if they are more than ``most``.

    Reference: Zhang, Tsang and Kwok (2008), Improved Nyström low-rank approximation and error
    analysis.
    """
    shuffled = points[rng.permutation(len(points))]
    _, first = np.unique(shuffled, axis=0, return_index=True)
    centres = shuffled[np.sort(first)[:most]]
    if 0 < most < len(first):
        for _ in range(K_MEANS_STEPS):
            # Each centre becomes the mean of the points nearest to it, or stays if there is none.
            distance = np.einsum("md,md->m", centres, centres) - 2 * points @ centres.T
            nearest = distance.argmin(axis=1)
            order = np.argsort(nearest, kind="stable")
            cluster, begin, count = np.unique(nearest[order], return_index=True, return_counts=True)
            centres = centres.copy()
            centres[cluster] = np.add.reduceat(points[order], begin, axis=0) / count[:, None]
    return centres
