"""What a regression sees of a context."""

import math
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats, Integers

CONSTANT, LINEAR, KERNEL = 0, 1, 2
"""The groups of features, each with prior variances of its own."""
GROUPS = 3
FARTHEST = 10.0
"""A standardized number counts as at most this far from its mean."""
JITTER = 1e-6
"""Added to the diagonal of the landmarks' kernel matrix, so that it can be inverted."""


class FeatureMap(NamedTuple):
    """φ(x) = (1, z / √D, W k(u)): a constant, the context, and kernels around landmarks.

    z = (x − ``shift``) · ``scale`` is the standardized context, cut off at ±10; the scale of a
    number that never varied is 0. If the context is wide, the linear part is z · ``projection``
    with a random matrix. k_j(u) = exp(−|u − landmark_j|² / (2 ``length``² D)) with
    u = z · ``relevance``: numbers on which the reward depends much count more for the distance.
    ``whitening`` W is the inverse root of the landmarks' kernel matrix, which makes regression on
    these features the one with a Gaussian process, restricted to what the landmarks can express.
    ``squares`` are the landmarks' squared lengths, which every distance needs.

    Reference: Williams and Seeger (2001), Using the Nyström method to speed up kernel machines.
    """

    shift: Floats
    scale: Floats
    projection: Floats | None
    relevance: Floats
    landmarks: Floats
    length: float
    whitening: Floats
    squares: Floats

    @property
    def width(self) -> int:
        """How many features there are (F)."""
        return 1 + self._linear_width + len(self.landmarks)

    @property
    def groups(self) -> Integers:
        """The group of each feature, ``[F]``."""
        sizes = (1, self._linear_width, len(self.landmarks))
        return np.repeat(np.arange(GROUPS), sizes)

    def rows(self, context: Floats) -> Floats:
        """The features of contexts: ``[n, D] -> [n, F]``."""
        raw = self.raw(context)
        first = 1 + self._linear_width
        raw[:, first:] = raw[:, first:] @ self.whitening.T
        return raw

    def raw(self, context: Floats) -> Floats:
        """The same before the kernels are multiplied by W: what deciding needs, in fewer steps."""
        z = self.standardized(context)
        linear, landmarks = self._linear_width, self.landmarks
        features = np.empty((len(z), 1 + linear + len(landmarks)))
        features[:, 0] = 1.0
        root = math.sqrt(max(z.shape[1], 1))
        features[:, 1 : 1 + linear] = (z if self.projection is None else z @ self.projection) / root
        if len(landmarks):
            u = z * self.relevance
            # −|u − landmark|² / 2, which rounding must not make positive.
            nearness = u @ landmarks.T
            nearness -= 0.5 * self.squares
            nearness -= 0.5 * np.einsum("nd,nd->n", u, u)[:, None]
            nearness *= 1 / (self.length * root) ** 2
            np.exp(np.minimum(nearness, 0.0, out=nearness), out=features[:, 1 + linear :])
        return features

    def raw_alone(self, context: Floats) -> Floats:
        """The same for one context, in few steps: ``[D] -> [F]``."""
        if self.projection is not None:
            only: Floats = self.raw(context[None])[0]
            return only
        z = context - self.shift
        z *= self.scale
        np.minimum(np.maximum(z, -FARTHEST, out=z), FARTHEST, out=z)
        width = len(z)
        features = np.empty(1 + width + len(self.landmarks))
        features[0] = 1.0
        np.divide(z, math.sqrt(max(width, 1)), out=features[1 : 1 + width])
        if len(self.landmarks):
            z *= self.relevance
            nearness = self.landmarks.dot(z)
            nearness -= 0.5 * z.dot(z)
            nearness -= 0.5 * self.squares
            nearness /= self.length**2 * width
            np.exp(np.minimum(nearness, 0.0, out=nearness), out=features[1 + width :])
        return features

    def for_raw(self, coefficients: Floats) -> Floats:
        """Coefficients of the features of ``raw`` with the same products: ``[..., F]``."""
        first = 1 + self._linear_width
        changed = coefficients.copy()
        changed[..., first:] = coefficients[..., first:] @ self.whitening
        return changed

    def standardized(self, context: Floats) -> Floats:
        """The standardized numbers of contexts: ``[n, D] -> [n, D]``."""
        z = context - self.shift
        z *= self.scale
        np.minimum(np.maximum(z, -FARTHEST, out=z), FARTHEST, out=z)
        return z

    def relearned(self, relevance: Floats) -> Self:
        """The same landmarks with another relevance of the context's numbers."""
        plain = self.landmarks / self.relevance
        landmarks = plain * relevance
        return self._replace(
            relevance=relevance,
            landmarks=landmarks,
            whitening=_whitening(landmarks, self.length),
            squares=_squares(landmarks),
        )

    def of_length(self, length: float) -> Self:
        """The same landmarks with another length."""
        return self._replace(length=length, whitening=_whitening(self.landmarks, length))

    def sensitivity(self, context: Floats, coefficients: Floats) -> Floats:
        """How much the regressions change with each standardized number, squared: ``[D]``.

        The mean over contexts and regressions of (∂ φ(x)·θ_k / ∂ z_d)², with what all regressions
        have in common taken out, since it does not decide between actions.
        """
        own = coefficients - coefficients.mean(axis=0) if len(coefficients) > 1 else coefficients
        first = 1 + self._linear_width
        kernel = own[:, first:] @ self.whitening
        u = self.standardized(context) * self.relevance
        pull = self.raw(context)[:, None, first:] * kernel
        slope = pull @ self.landmarks - pull.sum(axis=-1, keepdims=True) * u[:, None]
        width = max(u.shape[1], 1)
        slope *= self.relevance / (self.length**2 * width)
        linear = own[:, 1:first] / math.sqrt(width)
        slope += linear if self.projection is None else linear @ self.projection.T
        squared: Floats = np.mean(slope**2, axis=(0, 1))
        return squared

    @property
    def _linear_width(self) -> int:
        return len(self.scale) if self.projection is None else self.projection.shape[1]


def new_map(
    context: Floats,
    weight: Floats,
    most: int,
    length: float,
    rng: np.random.Generator,
    kernels: bool = True,
) -> FeatureMap:
    """A map with at most ``most`` features for contexts like these, ``[n, D]``.

    Landmarks are rows picked at random, each different one once. If the context has more numbers
    than half the features, its linear part is projected at random to that many. Without
    ``kernels`` the linear part may take up all features.
    """
    shift, scale = standardization(context, weight)
    width = context.shape[1]
    linear = min(width, most // 2 if kernels else most - 1)
    projection = None
    if linear < width:
        # On average the squares of the projected numbers add up to those of the context.
        projection = rng.standard_normal((width, linear)) / math.sqrt(max(linear, 1))
    blank, none = np.zeros((0, width)), np.zeros((0, 0))
    plain = FeatureMap(shift, scale, projection, np.ones(width), blank, length, none, np.zeros(0))
    if not kernels or not scale.any():
        return plain
    landmarks = _different(plain.standardized(context), max(most - 1 - linear, 0), rng)
    whitening, squares = _whitening(landmarks, length), _squares(landmarks)
    return plain._replace(landmarks=landmarks, whitening=whitening, squares=squares)


def standardization(context: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """The mean of each number, and one divided by its deviation, or 0 if it does not vary."""
    # In units of the largest number squares do not overflow.
    largest = np.maximum(np.abs(context).max(axis=0, initial=0.0), 1e-300)
    share = weight / weight.sum()
    mean = share @ (context / largest)
    deviation = np.sqrt(share @ (context / largest - mean) ** 2)
    varies = deviation > 1e-9
    scale = np.where(varies, 1.0 / (np.where(varies, deviation, 1.0) * largest), 0.0)
    return mean * largest, scale


def _different(rows: Floats, most: int, rng: np.random.Generator) -> Floats:
    """Up to ``most`` rows that differ from each other, in random order."""
    order = rng.permutation(len(rows))
    seen: set[bytes] = set()
    chosen: list[int] = []
    for number in order:
        if len(chosen) >= most:
            break
        key = rows[number].tobytes()
        if key not in seen:
            seen.add(key)
            chosen.append(int(number))
    return rows[chosen]


def _squares(landmarks: Floats) -> Floats:
    squares: Floats = np.einsum("md,md->m", landmarks, landmarks)
    return squares


def _whitening(landmarks: Floats, length: float) -> Floats:
    """W with Wᵀ W = (kernel matrix of the landmarks)⁻¹."""
    width = max(landmarks.shape[1], 1)
    square = _squares(landmarks)
    distance = square[:, None] + square - 2 * landmarks @ landmarks.T
    kernel = np.exp(-np.maximum(distance, 0.0) / (2 * length**2 * width))
    kernel.flat[:: len(kernel) + 1] += JITTER
    inverted: Floats = np.linalg.inv(np.linalg.cholesky(kernel))
    return inverted
