"""Mixture densities over choices and numbers."""

import functools
import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.conditioning import ConditionalDistribution
from submax.core.spaces import Box
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


@dataclass(frozen=True)
class MixtureDensity(ConditionalDistribution):
    """p(a) = (1/Z) Σ_z Π_s p_zs(a_s) Σ_k α_zk Π_j f(x_j; m_zkj, s_zkj), with x from 0 to 1.

    f is the logistic density with location m and scale s, truncated to the range from 0 to 1. The
    fields are the ``probabilities [R, L, n, Z, C]`` p of the choices, the weights α of the
    components, ``component [R, L, n, Z, K]``, and ``location`` m and ``scale`` s,
    ``[R, L, n, Z, K, d]``. Densities are in the units of the ``space``.
    """

    probabilities: Floats
    component: Floats
    location: Floats
    scale: Floats
    space: Box

    @classmethod
    def of(cls, output: NDArray[np.float32], space: Box, components: int) -> Self:
        """Return the mixture for the outputs of the head, ``[R, L, n, Z, O]``."""
        sizes, reals = space.choices, space.reals
        ends = np.cumsum([sum(sizes), components, components * reals])
        logits, chances, places, widths = np.split(output.astype(np.float64), ends, axis=-1)
        shape = (*output.shape[:-1], components, reals)
        share = scipy.special.expit(widths + FIRST_WIDTH)
        return cls(
            choice_probabilities(output[..., : ends[0]], sizes) if sizes else logits,
            scipy.special.softmax(chances, axis=-1),
            first_locations(components, reals) + REACH * np.tanh(places / REACH).reshape(shape),
            np.exp(LOG_NARROWEST + LOG_RANGE * share).reshape(shape),
            space,
        )

    def prob(self, action: Floats) -> Floats:
        sizes = self.space.choices
        choices, numbers = np.split(self.space.scaled(action), [len(sizes)], axis=-1)
        result = self._of_numbers(numbers)
        for slot, first in enumerate(first_choices(sizes) if sizes else ()):
            index = (first + choices[..., slot].astype(np.int64))[:, None, :, None]
            result *= np.take_along_axis(self.probabilities, index, axis=-1)
        mean: Floats = result.mean(axis=-2).swapaxes(1, 2)
        mean /= math.exp(self.space.log_volume)
        return mean

    def _of_numbers(self, numbers: Floats) -> Floats:
        """Return Σ_k α_k Π_j f(x_j), in blocks of rows: ``[R, n, M, d] -> [R, L, n, Z, M]``."""
        replicas, rows, count, _ = numbers.shape
        _, levels, _, draws, components = self.component.shape
        result = np.empty((replicas, levels, rows, draws, count))
        step = max(1, DENSITIES_PER_BLOCK // max(1, replicas * levels * count * draws * components))
        for begin in range(0, rows, step):
            part = slice(begin, begin + step)
            weight = self.component[:, :, part, :, None].astype(np.float32)
            result[:, :, part] = (weight @ self._components(numbers[:, part], part))[..., 0, :]
        return result

    def _components(self, numbers: Floats, part: slice) -> Any:
        """Return Π_j f(x_j) for some rows: ``[R, n, M, d] -> [R, L, n, Z, K, M]``.

        Each f is a float32; the product of many f needs the range of float64.
        """
        location, scale = self.location[:, :, part, ..., None], self.scale[:, :, part, ..., None]
        kind = np.float32 if numbers.shape[-1] <= FEW_DIMENSIONS else np.float64
        densities = (
            _logistic_density(point[:, None, :, None, None], location[..., j, :], scale[..., j, :])
            for j, point in enumerate(np.moveaxis(numbers, -1, 0))
        )
        return functools.reduce(lambda one, other: np.multiply(one, other, dtype=kind), densities)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Floats:
        """Draw a latent draw z, a component, the choices and the numbers by inversion."""
        sizes, weights = self.space.choices, self.component[:, level]
        replicas, rows, draws, components = weights.shape
        part = rng.integers(draws, size=(replicas, rows, count))
        component = _inverted(np.take_along_axis(weights, part[..., None], axis=2), rng)
        flat = (part * components + component)[..., None]
        joined = (replicas, rows, draws * components, self.location.shape[-1])
        location, scale = (
            np.take_along_axis(field[:, level].reshape(joined), flat, axis=2)
            for field in (self.location, self.scale)
        )
        numbers = _logistic(location, scale, rng.random(location.shape))
        picked = np.take_along_axis(self.probabilities[:, level], part[..., None], axis=2)
        slots = np.split(picked, first_choices(sizes)[1:], axis=-1) if sizes else []
        chosen = [_inverted(slot, rng)[..., None] for slot in slots]
        return self.space.unscaled(np.concatenate([*chosen, numbers], axis=-1))

    def rows(self, row: Integers) -> Self:
        replica = np.arange(len(row))[:, None]
        fields = ("probabilities", "component", "location", "scale")
        chosen = {name: getattr(self, name)[replica, :, row].swapaxes(1, 2) for name in fields}
        return replace(self, **chosen)


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
