"""Conditioned probabilities by removing noise from actions, guided by the reward."""

import functools
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats
from submax.core.checks import Allowed, Count, NonNegative, Positive, one_of
from submax.core.conditioning import ConditionalDistribution
from submax.core.problem import Problem
from submax.core.serialization import serializable
from submax.core.spaces import RealSpace
from submax.estimators.network import NetworkBelief, NetworkEstimator, NetworkParams
from submax.models.memory import Memory
from submax.models.networks.choices import (
    INJECTION_FORMS,
    DecodedChoices,
    choice_probabilities,
    where_chosen,
)
from submax.models.networks.densities import DecodedDensity, MixtureDensity
from submax.models.training_settings import Training

if TYPE_CHECKING:
    from submax.research.rivals.designs import DenoisingDesign

Weights = NDArray[np.float32]
LAST_ANGLE = 0.98
"""Share of π/2 at the highest noise level: there an action is nearly all noise, but not quite, so
that no division is by zero."""


@functools.cache
def signal_shares(steps: int) -> Floats:
    """Return ᾱ_0 = 1 … ᾱ_T, the share of the signal in the variance: cos²(0.98 π t / (2 T)).

    Reference: Nichol and Dhariwal (2021).
    """
    return np.cos(LAST_ANGLE * np.pi / 2 * np.arange(steps + 1) / steps) ** 2


@serializable("denoising-network")
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


class DenoisedBelief(NetworkBelief):
    """The mixture over the K paths of a denoising network, whose ends are blurred.

    If a path ends at y, with numbers between 0 and 1, then a slot has the probabilities
    softmax(y / τ), and a real-valued part has a logistic density at y with the scale τ, truncated
    to the range from 0 to 1; τ is ``spread``. The ``guidance`` is that of
    `DenoisingNetwork.denoised`.
    """

    @cached_property
    def _decoded(self) -> ConditionalDistribution:
        space = self.space
        if not isinstance(space, RealSpace):
            return DecodedChoices(self._choice_probabilities, space.choices)
        ends = self._ends.astype(np.float64)
        choices, numbers = np.split(ends, [sum(space.choices)], axis=-1)
        mixture = MixtureDensity(
            choice_probabilities(self._outputs(), space.choices) if space.choices else choices,
            np.ones((*ends.shape[:-1], 1)),
            numbers[..., None, :],
            np.full((*ends.shape[:-1], 1, space.reals), self.estimator.spread),
        )
        return DecodedDensity(mixture, space)

    def _outputs(self) -> NDArray[np.float32]:
        """Return the logits of all choices, ``[R, L, n, K, C]``."""
        choices: NDArray[np.float32] = self._ends[..., : sum(self.space.choices)]
        return choices / np.float32(self.estimator.spread)

    @cached_property
    def _ends(self) -> NDArray[np.float32]:
        """The ends of all paths, on the scale from 0 to 1: ``[R, L, n, K, W]``."""
        network = self.params.network
        assert isinstance(network, DenoisingNetwork)
        ends = (network.denoised(self._scaled_context, self.estimator.guidance) + 1) / 2
        # A prediction far outside of the range would overflow nothing, but means the same.
        return np.clip(ends, -1.0, 2.0)


@dataclass(frozen=True)
class Denoising(NetworkEstimator):
    """π(a | c, r) is a mixture of the ends of K paths from noise to actions, guided by r.

    A network learns to predict actions from actions with noise. Each of K = ``draws`` paths begins
    at noise that is drawn at every update and kept, and takes ``noise_steps`` steps, in which the
    prediction is x̂_none + ω (x̂_r − x̂_none), with x̂_none the prediction without a reward and ω the
    ``guidance``: above 1 the reward has more influence than in the data. The end of a path is
    blurred by τ = ``spread``, as a share of the range of a number, so that every action has a
    known probability or density (`DenoisedBelief`). It is made for real-valued actions; choices are
    treated as numbers of which the largest is chosen.

    Reference: Ajay et al. (2023), with guidance by the return; Ho and Salimans (2022).

    *Departs from the paper:* it is the action that is denoised, since there is one decision and no
    trajectory of states. Steps are deterministic and few, and paths are kept between updates, so
    that decisions and their probabilities agree. The network predicts the action and not the noise.
    A strategy weighs the reward levels; the paper asks for the highest one, as `Optimistic` does.
    """

    hidden: Count = 32
    noise_steps: Count = 8
    draws: Count = 16
    guidance: NonNegative = 1.5
    spread: Positive = 0.05
    injection: Annotated[str, Allowed(one_of, INJECTION_FORMS)] = "modulation"
    training: Training = field(default_factory=Training)
    memory: Memory = field(default_factory=Memory)

    components = 1

    @property
    def largest_deviation(self) -> float:
        """Return 1, the deviation of the noise: smaller features would be drowned."""
        return 1.0

    def design(self, problem: Problem) -> "DenoisingDesign":
        from submax.research.rivals.designs import DenoisingDesign

        return DenoisingDesign(
            problem.space.choices,
            problem.space.reals,
            problem.context_width,
            problem.scale.width,
            self.hidden,
            self.noise_steps,
            self.injection,
        )

    def drawn(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Floats:
        """Return the noise at which the paths begin, the same for every level."""
        width = sum(problem.space.choices) + problem.space.reals
        return rng.normal(size=(replicas, 1, self.draws, width))

    def silent_network(self, problem: Problem, replicas: int, levels: int) -> DenoisingNetwork:
        width = sum(problem.space.choices) + problem.space.reals
        shape = (self.noise_steps, self.draws, problem.context_width, width, self.hidden)
        return DenoisingNetwork.silent(replicas, levels, *shape)

    def belief(self, params: NetworkParams, context: Floats) -> DenoisedBelief:
        return DenoisedBelief(self, params, context)
