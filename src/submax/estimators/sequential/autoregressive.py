"""Conditioned probabilities by a network that chooses one slot after the other."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import one_of, whole_number
from submax.core.contracts.problem import Problem
from submax.core.memory.memory import Memory
from submax.core.memory.training import Training
from submax.estimators.network_estimator import NetworkEstimator
from submax.estimators.network_params import NetworkParams
from submax.estimators.sequential.sequence_belief import SequenceBelief
from submax.models.networks.autoregressive_network import AutoregressiveNetwork
from submax.models.networks.slot_network import INJECTION_FORMS

if TYPE_CHECKING:
    from submax.models.nn.designs.autoregressive_design import AutoregressiveDesign


@dataclass(frozen=True)
class Autoregressive(NetworkEstimator):
    """π(a | c, r) = Π_s p(a_s | a_1 … a_{s−1}, c, r), with one network p for all slots s.

    Any distribution over joint actions has this form, so that choices of different slots may depend
    on each other; no latent variable is needed, and all probabilities are exact. A draw evaluates
    the network once for each slot.

    Reference: Chen et al. (2021), a decision transformer for one decision: return, state, then the
    parts of the action as a sequence.

    *Departs from the paper:* the sequence is short and its length is fixed, so that the network has
    two hidden layers which read all earlier choices, and no attention. The reward enters as in the
    paper's own networks (``injection``), not as a token. Decisions do not condition on one high
    return; a strategy weighs the reward levels.
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

    def design(self, problem: Problem) -> "AutoregressiveDesign":
        from submax.models.nn.designs.autoregressive_design import AutoregressiveDesign

        return AutoregressiveDesign(
            problem.space.choices,
            problem.context_width,
            problem.scale.width,
            self.hidden,
            self.injection,
        )

    def drawn(self, replicas: int, levels: int, rng: np.random.Generator) -> Floats:
        return np.zeros((replicas, 1, 1, 0))

    def silent_network(self, problem: Problem, replicas: int, levels: int) -> AutoregressiveNetwork:
        sizes, width = problem.space.choices, problem.context_width
        return AutoregressiveNetwork.silent(replicas, levels, sizes, width, self.hidden)

    def belief(self, params: NetworkParams, context: Floats) -> SequenceBelief:
        return SequenceBelief(params, context, 0, lambda: self.importance_values(params))
