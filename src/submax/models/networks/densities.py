"""Mixture densities over choices and numbers."""

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.conditioning import ConditionalDistribution
from submax.core.serialization import serializable
from submax.core.spaces import RealSpace
from submax.models.networks.choices import choice_probabilities, first_choices

NARROWEST, WIDEST = 0.02, 2.0
"""The smallest and the largest scale of a logistic density, for numbers from 0 to 1: from a narrow
peak to a nearly uniform density."""
REACH = 2.0
"""Largest distance of a location from its initial value."""
LOG_NARROWEST = math.log(NARROWEST)
LOG_RANGE = math.log(WIDEST / NARROWEST)
FIRST_WIDTH = 1.0
"""Added to the output for a width, so densities are wide before training."""


def outputs(choices: int, reals: int, components: int) -> int:
    """Return the number of outputs of the head."""
    return choices + (components * (1 + 2 * reals) if reals else 0)


@functools.cache
def first_locations(components: int, reals: int) -> Floats:
    """Return the initial locations of the components, spread evenly over the unit cube: ``[K, d]``.

    They are the fractional parts of 1/2 + k g^{−j}, with g the positive root of g^{d+1} = g + 1.

    Reference: Roberts (2018), the generalized golden ratio.
    """
    golden = 2.0
    for _ in range(60):
        golden = (1 + golden) ** (1 / (reals + 1))
    steps = golden ** -np.arange(1.0, reals + 1)
    return (0.5 + np.arange(components)[:, None] * steps) % 1


FEW_DIMENSIONS = 3
"""Up to this many dimensions, the product of the densities fits into a float32."""
DENSITIES_PER_BLOCK = 2**17
"""About this many densities are computed together, so they fit into the processor's cache."""
Reals: TypeAlias = NDArray[np.floating[Any]]


@serializable("mixture-density")
class MixtureDensity(NamedTuple):
    """p(a) = (1/Z) Σ_z Π_s p_zs(a_s) Σ_k α_zk Π_j f(x_j; m_zkj, s_zkj), with x from 0 to 1.

    f is the logistic density with location m and scale s, truncated to the range from 0 to 1. The
    fields are the ``probabilities [..., Z, C]`` p of the choices, the weights α of the components,
    ``component [..., Z, K]``, and ``location`` m and ``scale`` s, ``[..., Z, K, d]``. Leading axes
    are those of the network's output.
    """

    probabilities: Floats
    component: Floats
    location: Floats
    scale: Floats

    @classmethod
    def of(
        cls, output: NDArray[np.float32], sizes: tuple[int, ...], reals: int, components: int
    ) -> Self:
        """Return the mixture for the outputs of the head, ``[..., Z, O]``."""
        ends = np.cumsum([sum(sizes), components, components * reals])
        logits, chances, places, widths = np.split(output.astype(np.float64), ends, axis=-1)
        shape = (*output.shape[:-1], components, reals)
        share = scipy.special.expit(widths + FIRST_WIDTH)
        return cls(
            choice_probabilities(output[..., : ends[0]], sizes) if sizes else logits,
            scipy.special.softmax(chances, axis=-1),
            first_locations(components, reals) + REACH * np.tanh(places / REACH).reshape(shape),
            np.exp(LOG_NARROWEST + LOG_RANGE * share).reshape(shape),
        )

    def density(self, action: Floats, sizes: tuple[int, ...]) -> Floats:
        """Return the density of actions ``[R, n, M, S]``: ``[R, n, L, M]``.

        The fields of the mixture are ``[R, L, n, Z, ...]``.
        """
        choices, numbers = np.split(action, [len(sizes)], axis=-1)
        result = self._of_numbers(numbers)
        for slot, first in enumerate(first_choices(sizes) if sizes else ()):
            index = (first + choices[..., slot].astype(np.int64))[:, None, :, None]
            result *= np.take_along_axis(self.probabilities, index, axis=-1)
        return result.mean(axis=-2).swapaxes(1, 2)

    def _of_numbers(self, numbers: Floats) -> Floats:
        """Return Σ_k α_k Π_j f(x_j), in blocks of rows: ``[R, n, M, d] -> [R, L, n, Z, M]``."""
        replicas, rows, count, _ = numbers.shape
        _, levels, _, draws, components = self.location.shape[:-1]
        result = np.empty((replicas, levels, rows, draws, count))
        step = max(1, DENSITIES_PER_BLOCK // max(1, replicas * levels * count * draws * components))
        for begin in range(0, rows, step):
            part = slice(begin, begin + step)
            weight = self.component[:, :, part, :, None].astype(np.float32)
            result[:, :, part] = (weight @ self._components(numbers[:, part], part))[..., 0, :]
        return result

    def _components(self, numbers: Floats, part: slice) -> Reals:
        """Return Π_j f(x_j) for some rows: ``[R, n, M, d] -> [R, L, n, Z, K, M]``.

        Each f is a float32; the product of many f needs the range of float64.
        """
        product: Reals | None = None
        kind = np.float32 if numbers.shape[-1] <= FEW_DIMENSIONS else np.float64
        for dimension in range(numbers.shape[-1]):
            location, scale = (
                values[:, :, part, ..., dimension, None] for values in (self.location, self.scale)
            )
            point = numbers[:, None, :, None, None, :, dimension]
            density = _logistic_density(point, location, scale)
            product = density if product is None else np.multiply(product, density, dtype=kind)
        assert product is not None
        return product

    def sample(self, count: int, sizes: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Draw actions ``[R, n, count, S]`` from a mixture with fields ``[R, n, Z, ...]``.

        A latent draw z, a component, the choices and the numbers are drawn by inversion.
        """
        replicas, rows, draws, components = self.component.shape
        shape = (replicas, rows, count)
        part = rng.integers(draws, size=shape)
        chances = np.take_along_axis(self.component, part[..., None], axis=2)
        component = _inverted(chances, rng)
        flat = (part * components + component)[..., None]
        joined = (replicas, rows, draws * components, self.location.shape[-1])
        location = np.take_along_axis(self.location.reshape(joined), flat, axis=2)
        scale = np.take_along_axis(self.scale.reshape(joined), flat, axis=2)
        numbers = _logistic(location, scale, rng.random(location.shape))
        picked = np.take_along_axis(self.probabilities, part[..., None], axis=2)
        slots = np.split(picked, first_choices(sizes)[1:], axis=-1) if sizes else []
        chosen = [_inverted(slot, rng)[..., None] for slot in slots]
        return np.concatenate([*chosen, numbers], axis=-1)

    def at_level(self, level: int) -> Self:
        """Select one level: ``[R, L, n, Z, ...] -> [R, n, Z, ...]``."""
        return type(self)(*(part[:, level] for part in self))

    def rows(self, row: Integers) -> Self:
        """Select rows ``[R, m]``: ``[R, L, n, Z, ...] -> [R, L, m, Z, ...]``."""
        replica = np.arange(len(row))[:, None]
        return type(self)(*(part[replica, :, row].swapaxes(1, 2) for part in self))


def _logistic_density(point: Floats, location: Floats, scale: Floats) -> NDArray[np.float32]:
    """Return the truncated logistic density at x ``[..., M]``, with m and s ``[..., 1]``.

    With y = (x − m) / s, f(x) = σ(y) σ(−y) / (s (σ(b) − σ(a))), where b and a are y at x = 1 and
    x = 0. The difference σ(b) − σ(a) = σ(b) σ(−a) (1 − exp(a − b)) is precise in both tails. The
    numerator is σ(y) σ(−y) = e / (1 + e)² with e = exp(−|y|). If m lies outside of the range, all e
    share a small factor; it is moved into the constant, so float32 is enough for the rest.
    """
    outside = np.maximum(0.0, np.maximum(-location, location - 1)) / scale
    log_expit = scipy.special.log_expit
    inside = log_expit((1 - location) / scale) + log_expit(location / scale)
    constant = np.exp(-inside - outside) / (-np.expm1(-1 / scale) * scale)
    falling = point.astype(np.float32) - location.astype(np.float32)
    np.abs(falling, out=falling)
    falling *= (-1 / scale).astype(np.float32)
    falling += outside.astype(np.float32)
    np.exp(falling, out=falling)
    falling /= np.square(1 + np.exp(-outside).astype(np.float32) * falling)
    falling *= constant.astype(np.float32)
    return falling


def _inverted(probabilities: Floats, rng: np.random.Generator) -> Integers:
    """Draw an index from each row of probabilities: ``[..., K] -> [...]``."""
    rising = probabilities.cumsum(axis=-1)
    uniform = rng.random(rising.shape[:-1]) * rising[..., -1]
    return (rising[..., :-1] <= uniform[..., None]).sum(axis=-1)


def _logistic(location: Floats, scale: Floats, uniform: Floats) -> Floats:
    """Return quantiles of the truncated logistic density; all arrays have the same shape.

    If the location is below 1/2, the density is mirrored, which keeps the precision of small
    probabilities.
    """
    mirrored = location < 0.5
    centre = np.where(mirrored, 1 - location, location)
    first, last = scipy.special.expit(-centre / scale), scipy.special.expit((1 - centre) / scale)
    number = centre + scale * scipy.special.logit(first + uniform * (last - first))
    number = np.clip(number, 0.0, 1.0)
    return np.where(mirrored, 1 - number, number)


@dataclass(frozen=True)
class DecodedDensity(ConditionalDistribution):
    """A mixture density with axes ``[R, L, n, Z, ...]`` over a space with real-valued parts."""

    mixture: MixtureDensity
    space: RealSpace

    def prob(self, action: Floats) -> Floats:
        """Return the density in the units of the space: that on the unit cube over the volume."""
        result = self.mixture.density(self.space.scaled(action), self.space.choices)
        result /= math.exp(self.space.log_volume)
        return result

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Floats:
        drawn = self.mixture.at_level(level).sample(count, self.space.choices, rng)
        return self.space.unscaled(drawn)

    def rows(self, row: Integers) -> "DecodedDensity":
        return DecodedDensity(self.mixture.rows(row), self.space)
