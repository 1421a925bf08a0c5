"""Mixtures of products over choices and numbers: probabilities, densities and draws."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from submax.core.arrays import Floats, Integers
from submax.networks.density_head import (
    FIRST_WIDTH,
    LOG_NARROWEST,
    LOG_RANGE,
    REACH,
    first_locations,
)
from submax.networks.slot_choices import choice_probabilities, first_choices


class MixtureDensity(NamedTuple):
    """p(a) = (1/Z) Σ_z Π_s p_zs(a_s) Σ_k α_zk Π_j f(x_j; m_zkj, s_zkj), with x from 0 to 1.

    f is the logistic density of location m and scale s between 0 and 1, normalized there.
    ``probabilities [..., Z, C]`` of the choices, ``component [..., Z, K]``, ``location`` and
    ``scale [..., Z, K, d]``; the axes before are those of the network's output.
    """

    probabilities: Floats
    component: Floats
    location: Floats
    scale: Floats

    @classmethod
    def of(
        cls, output: NDArray[np.float32], sizes: tuple[int, ...], reals: int, components: int
    ) -> Self:
        """From what the head puts out, ``[..., Z, O]``."""
        ends = np.cumsum([sum(sizes), components, components * reals])
        logits, chances, places, widths = np.split(output.astype(np.float64), ends, axis=-1)
        shape = (*output.shape[:-1], components, reals)
        share = special.expit(widths + FIRST_WIDTH)
        return cls(
            choice_probabilities(output[..., : ends[0]], sizes) if sizes else logits,
            special.softmax(chances, axis=-1),
            first_locations(components, reals) + REACH * np.tanh(places / REACH).reshape(shape),
            np.exp(LOG_NARROWEST + LOG_RANGE * share).reshape(shape),
        )

    def density(self, action: Floats, sizes: tuple[int, ...]) -> Floats:
        """Of actions ``[R, n, M, S]``, for parts ``[R, L, n, Z, ...]``: ``[R, n, L, M]``."""
        choices, numbers = np.split(action, [len(sizes)], axis=-1)
        parts = self._components(numbers[:, None, :, :, None, None, :])
        found = np.einsum("rlnmzk,rlnzk->rlnmz", parts, self.component)
        for slot, first in enumerate(first_choices(sizes) if sizes else ()):
            place = (first + choices[..., slot].astype(np.int64))[:, None, :, :, None]
            entries = self.probabilities.swapaxes(-1, -2)
            found *= np.take_along_axis(entries, place, axis=3)
        mean: Floats = found.mean(axis=-1).swapaxes(1, 2)
        return mean

    def sample(self, count: int, sizes: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Draw a part of the mixture, a component and each number, all by inversion.

        The parts are ``[R, n, Z, ...]``; the draws are ``[R, n, count, S]``.
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
        """At one level of ``[R, L, n, Z, ...]``: ``[R, n, Z, ...]``."""
        return type(self)(*(part[:, level] for part in self))

    def rows(self, row: Integers) -> Self:
        """For some rows ``[R, m]`` of ``[R, L, n, Z, ...]``."""
        replica = np.arange(len(row))[:, None]
        return type(self)(*(part[replica, :, row].swapaxes(1, 2) for part in self))

    def _components(self, numbers: Floats) -> Floats:
        """Π_j f(x_j): ``[R, 1, n, M, 1, 1, d] -> [R, L, n, M, Z, K]``.

        With y = (x − m) / s, f(x) = σ(y) σ(−y) / (s (σ(b) − σ(a))), where b and a are y at 1 and 0,
        and σ(b) − σ(a) = σ(b) σ(−a) (1 − exp(a − b)), which keeps its digits in both tails.
        """
        location, scale = self.location[:, :, :, None], self.scale[:, :, :, None]
        inside = special.log_expit((1 - location) / scale) + special.log_expit(location / scale)
        constant = np.exp(-inside) / (-np.expm1(-1 / scale) * scale)
        falling = np.exp(-np.abs((numbers - location) / scale))
        falling /= np.square(1 + falling)
        falling *= constant
        product: Floats = falling.prod(axis=-1) if numbers.shape[-1] > 1 else falling[..., 0]
        return product


def _inverted(probabilities: Floats, rng: np.random.Generator) -> Integers:
    """Draw an index from each row: ``[..., K] -> [...]``."""
    rising = probabilities.cumsum(axis=-1)
    uniform = rng.random(rising.shape[:-1]) * rising[..., -1]
    index: Integers = (rising[..., :-1] <= uniform[..., None]).sum(axis=-1)
    return index


def _logistic(location: Floats, scale: Floats, uniform: Floats) -> Floats:
    """Quantiles of the logistic density between 0 and 1, all arrays of one shape.

    Where the location is below a half, everything is mirrored: near the lower end small
    probabilities keep their digits.
    """
    mirrored = location < 0.5
    place = np.where(mirrored, 1 - location, location)
    first, last = special.expit(-place / scale), special.expit((1 - place) / scale)
    number = place + scale * special.logit(first + uniform * (last - first))
    number = np.clip(number, 0.0, 1.0)
    found: Floats = np.where(mirrored, 1 - number, number)
    return found
