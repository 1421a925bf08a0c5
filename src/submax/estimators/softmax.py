"""Conditioned probabilities by a network with one softmax in each slot."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import one_of, whole_number
from submax.core.contracts.problem import Problem
from submax.core.memory.memory import Memory
from submax.core.memory.training import Training
from submax.estimators.network_estimator import NetworkEstimator
from submax.models.networks.slot_network import INJECTION_FORMS

if TYPE_CHECKING:
    from submax.models.nn.designs.softmax_design import SoftmaxDesign


@dataclass(frozen=True)
class Softmax(NetworkEstimator):
    """π(a | c, r) = Π_s softmax(h_s(c, r)), with h a network without a latent variable.

    It is made for one slot. The choices of several slots are independent given context and reward;
    a `CVAE` can also represent dependent choices.
    """

    hidden: int = 32
    injection: str = "modulation"
    training: Training = field(default_factory=Training)
    memory: Memory = field(default_factory=Memory)

    def __post_init__(self) -> None:
        whole_number("hidden", self.hidden, at_least=1)
        one_of("injection", self.injection, INJECTION_FORMS)

    @property
    def latent_draws(self) -> int:
        return 1

    def design(self, problem: Problem) -> "SoftmaxDesign":
        from submax.models.nn.designs.softmax_design import SoftmaxDesign

        return SoftmaxDesign(
            problem.space.choices,
            problem.context_width,
            problem.scale.width,
            self.hidden,
            self.injection,
        )

    def drawn(self, replicas: int, levels: int, rng: np.random.Generator) -> Floats:
        return np.zeros((replicas, 1, 1, 0))
