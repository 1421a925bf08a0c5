"""Conditioned probabilities by removing noise from actions, guided by the reward."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative, one_of, positive, whole_number
from submax.core.contracts.problem import Problem
from submax.core.memory.memory import Memory
from submax.core.memory.training import Training
from submax.estimators.denoising.denoised_belief import DenoisedBelief
from submax.estimators.network_estimator import NetworkEstimator
from submax.estimators.network_params import NetworkParams
from submax.models.networks.denoising_network import DenoisingNetwork
from submax.models.networks.slot_network import INJECTION_FORMS

if TYPE_CHECKING:
    from submax.models.nn.designs.denoising_design import DenoisingDesign


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

    hidden: int = 32
    noise_steps: int = 8
    draws: int = 16
    guidance: float = 1.5
    spread: float = 0.05
    injection: str = "modulation"
    training: Training = field(default_factory=Training)
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        for name in ("hidden", "noise_steps", "draws"):
            whole_number(name, getattr(self, name), at_least=1)
        non_negative("guidance", self.guidance)
        positive("spread", self.spread)
        one_of("injection", self.injection, INJECTION_FORMS)

    @property
    def latent_draws(self) -> int:
        return self.draws

    @property
    def components(self) -> int:
        return 1

    @property
    def largest_deviation(self) -> float:
        """Return 1, the deviation of the noise: smaller features would be drowned."""
        return 1.0

    def design(self, problem: Problem) -> "DenoisingDesign":
        from submax.models.nn.designs.denoising_design import DenoisingDesign

        return DenoisingDesign(
            problem.space.choices,
            problem.space.reals,
            problem.context_width,
            problem.scale.width,
            self.hidden,
            self.noise_steps,
            self.injection,
        )

    def drawn(self, replicas: int, levels: int, rng: np.random.Generator) -> Floats:
        return np.zeros((replicas, 1, self.draws, 0))

    def latent_for(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Floats:
        """Return the noise at which the paths begin, the same for every level."""
        width = sum(problem.space.choices) + problem.space.reals
        return rng.normal(size=(replicas, 1, self.draws, width))

    def silent_network(self, problem: Problem, replicas: int, levels: int) -> DenoisingNetwork:
        width = sum(problem.space.choices) + problem.space.reals
        shape = (self.noise_steps, self.draws, problem.context_width, width, self.hidden)
        return DenoisingNetwork.silent(replicas, levels, *shape)

    def belief(self, params: NetworkParams, context: Floats) -> DenoisedBelief:
        def values() -> Floats:
            return self.importance_values(params)

        return DenoisedBelief(params, context, self.guidance, self.spread, values)
