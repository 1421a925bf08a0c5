"""Conditioned probabilities by a conditional variational auto-encoder."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative, one_of, whole_number
from submax.core.contracts.problem import Problem
from submax.core.memory.memory import Memory
from submax.core.memory.training import Training
from submax.estimators.network_estimator import NetworkEstimator
from submax.models.networks.slot_network import INJECTION_FORMS

if TYPE_CHECKING:
    from submax.models.nn.designs.cvae_design import CVAEDesign


@dataclass(frozen=True)
class CVAE(NetworkEstimator):
    """π(a | c, r) ≈ (1/N_z) Σ_i p(a | c, r, z_i) with p a product of softmaxes, one in each slot.

    Over real-valued parts of an action p is a mixture of ``components`` densities.

    N_z is ``draws``: so many draws of a latent variable of width ``latent`` are taken from N(0, 1)
    at every update and kept, so that decisions and their probabilities agree. All reward levels
    use the same draws if ``shared_draws`` is set; with separate draws, the difference between two
    levels is mostly noise. ``kl_weight`` is β, the weight of the Kullback-Leibler term.
    ``injection`` is the way in which the reward enters the layers; ``"input-concatenation"``, the
    naive way, is there for comparison.

    Reference: Xu et al. (2024), section 4.3.

    *Departs from the paper:* the draws are kept between updates and shared by the levels. The
    reward is encoded by interpolation between bin edges (one-hot if the reward is an edge), because
    a gate that multiplies by a reward of 0 would pass nothing. Real-valued actions are not in the
    paper.
    """

    hidden: int = 32
    latent: int = 8
    draws: int = 5
    kl_weight: float = 0.5
    injection: str = "modulation"
    shared_draws: bool = True
    components: int = 4
    training: Training = field(default_factory=Training)
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        for name in ("hidden", "latent", "draws", "components"):
            whole_number(name, getattr(self, name), at_least=1)
        non_negative("kl_weight", self.kl_weight)
        one_of("injection", self.injection, INJECTION_FORMS)

    @property
    def latent_draws(self) -> int:
        return self.draws

    @property
    def largest_deviation(self) -> float:
        """Return 1, the deviation of the latent variable: smaller features would be drowned."""
        return 1.0

    def design(self, problem: Problem) -> "CVAEDesign":
        from submax.models.nn.designs.cvae_design import CVAEDesign

        return CVAEDesign(
            problem.space.choices,
            problem.space.reals,
            problem.context_width,
            problem.scale.width,
            self.hidden,
            self.latent,
            self.injection,
            self.kl_weight,
            self.components,
        )

    def drawn(self, replicas: int, levels: int, rng: np.random.Generator) -> Floats:
        levels = 1 if self.shared_draws else levels
        return rng.normal(size=(replicas, levels, self.draws, self.latent))
