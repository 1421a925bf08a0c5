"""Policy gradient through the decoder of a generative model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative, positive, whole_number
from submax.core.contracts.problem import Problem
from submax.policies.policy_gradient.advantages import weighted_advantages
from submax.policies.policy_gradient.policy_network import PolicyNetwork
from submax.policies.policy_gradient.policy_network_policy import PolicyNetworkPolicy

if TYPE_CHECKING:
    from submax.models.nn.designs.policy_design import PolicyDesign


@dataclass(frozen=True)
class GenerativePolicyGradient(PolicyNetworkPolicy):
    """Follow the policy gradient of p(a | c) = (1/Z) Σ_z d(a | c, z), with d a decoder.

    d is the decoder of a CVAE: a softmax in each slot, and a mixture density with ``components``
    over real-valued parts. z ~ N(0, 1) has ``latent`` dimensions, and Z is ``draws``. The gradient
    Σ_i w_i (r_i − b) ∇ log p(a_i | c_i) goes through the logarithm of the mean over z, with new
    draws in every step; b is the mean reward, and w_i = min(p(a_i | c_i) / q_i, W) the importance
    weight, with W the ``largest_weight``. λ = ``regularization`` is the weight of the divergence
    from the uniform policy. Z draws are kept from one update to the next, so that decisions have
    exact probabilities. Decisions are made by π = ε / M + (1 − ε) p.

    Reference: Cheng et al. (2022), who combine policy gradient with a generative network to place
    and route chips; Williams (1992).

    *Departs from the paper:* in the paper the policy that places is followed by a separate
    generative network that routes, trained with discriminators. Here the generative network is the
    policy itself, which the reward trains.
    """

    latent: int = 8
    draws: int = 5
    components: int = 4
    regularization: float = 0.01
    largest_weight: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("latent", "draws", "components"):
            whole_number(name, getattr(self, name), at_least=1)
        non_negative("regularization", self.regularization)
        positive("largest_weight", self.largest_weight)

    @property
    def latent_width(self) -> int:
        return self.latent

    @property
    def latent_draws(self) -> int:
        return self.draws

    @property
    def density_components(self) -> int:
        return self.components

    def design(self, problem: Problem) -> "PolicyDesign":
        from submax.models.nn.designs.policy_design import PolicyDesign

        return PolicyDesign(
            sizes=problem.space.choices,
            reals=problem.space.reals,
            context_width=problem.context_width,
            hidden=self.hidden,
            latent=self.latent,
            draws=self.draws,
            components=self.components,
            regularization=self.regularization,
            largest_weight=self.largest_weight,
            listed=0,
        )

    def columns(self, state: PolicyNetwork, rng: np.random.Generator) -> Floats:
        """Return (r − b) / s and log q of every row: ``[R, rows, 2]``."""
        problem = state.problem
        return weighted_advantages(problem.scale, problem.space, state.buffer)
