"""Conditioned probabilities by a conditional variational auto-encoder."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative, one_of, whole_number
from submax.core.contracts.problem import Problem
from submax.core.memory.memory import Memory
from submax.core.memory.training import Training
from submax.estimators.network_estimator import NetworkEstimator
from submax.networks.slot_network import INJECTION_FORMS

if TYPE_CHECKING:
    from submax.nn.designs.cvae_design import CVAEDesign


@dataclass(frozen=True)
class CVAE(NetworkEstimator):
    """π(a | c, r) ≈ (1/N_z) Σ_i p(a | c, r, z_i) with p a product of softmaxes, one in each slot.

    Over real-valued parts of an action p is a mixture of ``components`` densities.

    N_z is ``draws``, of a latent variable of width ``latent``, taken from N(0, 1) at every refit
    and kept, so that decisions and their probabilities agree. They are the same for every reward
    level, unless ``shared_draws`` is off: with draws of its own for each level, the difference of
    two levels is mostly noise. ``kl_weight`` is β.

    Reference: Xu et al. (2024), section 4.3.

    *Departs from the paper:* the draws are kept between refits and shared by the levels, and the
    reward is injected by its place between bin edges, one-hot at an edge, since a gate on a reward
    of 0 would be shut. Real-valued actions are not in the paper.
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
        """N_z."""
        return self.draws

    @property
    def largest_deviation(self) -> float:
        """That of the latent variable: beside it, smaller features would be drowned."""
        return 1.0

    def design(self, problem: Problem) -> "CVAEDesign":
        """What is trained."""
        from submax.nn.designs.cvae_design import CVAEDesign

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
        """Normal draws, the same for all levels unless they are not shared."""
        levels = 1 if self.shared_draws else levels
        return rng.normal(size=(replicas, levels, self.draws, self.latent))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Small ones, trained briefly; with draws of its own for each level, with a reservoir."""
        training = Training(steps=6, batch=8, learning_rate=0.05)
        yield cls(hidden=4, latent=2, draws=3, training=training)
        yield cls(hidden=4, latent=2, draws=2, shared_draws=False, training=training)
        yield cls(hidden=4, latent=2, draws=2, training=training, memory=Memory(reservoir=5))
