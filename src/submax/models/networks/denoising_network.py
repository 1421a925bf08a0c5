"""A trained network that removes noise from actions, at given reward levels, as numpy arrays."""

import functools
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats
from submax.core.running.stored import stored
from submax.models.networks.replicas import where_chosen

Weights = NDArray[np.float32]
LAST_ANGLE = 0.98
"""Share of π/2 at the highest noise level: there an action is nearly all noise, but not quite, so
that no division is by zero."""


@functools.cache
def signal_shares(steps: int) -> Floats:
    """Return ᾱ_0 = 1 … ᾱ_T, the share of the signal in the variance: cos²(0.98 π t / (2 T)).

    Reference: Nichol and Dhariwal (2021).
    """
    shares: Floats = np.cos(LAST_ANGLE * np.pi / 2 * np.arange(steps + 1) / steps) ** 2
    return shares


@stored("denoising-network")
class DenoisingNetwork(NamedTuple):
    """The prediction of an action without noise, from one with noise, at L levels and without one.

    The last of the L + 1 conditions is the one without a reward. With W numbers of an action, T
    steps, D context numbers, H hidden units and K paths, shapes are ``noise_weight [R, L + 1, W,
    H]``, ``step_bias [R, L + 1, T, H]``, ``context_weight [R, L + 1, D, H]``, ``second_weight
    [R, L + 1, H, H]``, ``second_bias [R, L + 1, 1, H]``, ``head_weight [R, 1, H, W]``, ``head_bias
    [R, 1, 1, W]``, and ``starts [R, 1, K, W]``, the noise at which the K paths begin.
    """

    noise_weight: Weights
    step_bias: Weights
    context_weight: Weights
    second_weight: Weights
    second_bias: Weights
    head_weight: Weights
    head_bias: Weights
    starts: Weights

    @classmethod
    def silent(
        cls,
        replicas: int,
        levels: int,
        steps: int,
        paths: int,
        width: int,
        action: int,
        hidden: int,
    ) -> Self:
        """Return an untrained network, which predicts 0 for every number of an action."""
        shapes = (
            (replicas, levels + 1, action, hidden),
            (replicas, levels + 1, steps, hidden),
            (replicas, levels + 1, width, hidden),
            (replicas, levels + 1, hidden, hidden),
            (replicas, levels + 1, 1, hidden),
            (replicas, 1, hidden, action),
            (replicas, 1, 1, action),
            (replicas, 1, paths, action),
        )
        return cls(*(np.zeros(shape, dtype=np.float32) for shape in shapes))

    def where(self, chosen: Booleans, other: Self) -> Self:
        """Return this network in the replicas ``chosen [R]``, and the other one elsewhere."""
        return type(self)(*where_chosen(chosen, self, other))

    def denoised(self, context: Floats, guidance: float) -> Weights:
        """Return the ends of all paths at each level: ``[R, n, D] -> [R, L, n, K, W]``.

        A path begins at noise x_T. In step t the network predicts the action x̂ without noise, and
        x_{t−1} = √ᾱ_{t−1} x̂ + √(1 − ᾱ_{t−1}) (x_t − √ᾱ_t x̂) / √(1 − ᾱ_t). With ``guidance`` ω,
        x̂ is x̂_none + ω (x̂_level − x̂_none). The result is the last x̂.

        Reference: Song et al. (2021) for the deterministic steps; Ho and Salimans (2022) for ω.
        """
        conditions, steps = self.step_bias.shape[1:3]
        replicas, rows = context.shape[:2]
        paths, width = self.starts.shape[2:]
        given = context.astype(np.float32)[:, None] @ self.context_weight
        shape = (replicas, conditions - 1, rows, paths, width)
        x: Weights = np.broadcast_to(self.starts[:, :, None], shape)
        shares = np.sqrt(signal_shares(steps)).astype(np.float32)
        noises = np.sqrt(1 - signal_shares(steps)).astype(np.float32)
        clean = x
        for step in range(steps, 0, -1):
            level = self._predicted(x, step, given, slice(0, -1))
            none = self._predicted(x, step, given, slice(-1, None))
            clean = none + np.float32(guidance) * (level - none)
            noise = (x - shares[step] * clean) / noises[step]
            x = shares[step - 1] * clean + noises[step - 1] * noise
        return clean

    def _predicted(self, x: Weights, step: int, given: Weights, part: slice) -> Weights:
        """Return x̂ of ``x [R, L, n, K, W]`` under some of the conditions, one or L of them."""
        replicas, levels, rows, paths, width = x.shape
        units = self.noise_weight.shape[-1]
        flat = x.reshape(replicas, levels, rows * paths, width)
        first = flat @ self.noise_weight[:, part]
        first = first.reshape(replicas, levels, rows, paths, units) + given[:, part, :, None]
        first += self.step_bias[:, part, None, None, step - 1]
        hidden = np.maximum(first, 0).reshape(replicas, levels, rows * paths, units)
        hidden = np.maximum(hidden @ self.second_weight[:, part] + self.second_bias[:, part], 0)
        predicted: Weights = hidden @ self.head_weight + self.head_bias
        return predicted.reshape(x.shape)
