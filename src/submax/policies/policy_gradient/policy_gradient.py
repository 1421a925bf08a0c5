"""Policy gradient in context, with a baseline and importance weights."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative, positive
from submax.core.contracts.problem import Problem
from submax.policies.policy_gradient.advantages import weighted_advantages
from submax.policies.policy_gradient.policy_network import PolicyNetwork
from submax.policies.policy_gradient.policy_network_policy import PolicyNetworkPolicy

if TYPE_CHECKING:
    from submax.models.nn.designs.policy_design import PolicyDesign


@dataclass(frozen=True)
class PolicyGradient(PolicyNetworkPolicy):
    """Raise log π(a | c) of logged decisions in proportion to r − b.

    The gradient is Σ_i w_i (r_i − b) ∇ log p(a_i | c_i), with p a softmax network (in each slot),
    b the mean reward, and w_i = min(p(a_i | c_i) / q_i, W) the importance weight of a decision that
    was made with probability q_i. W is ``largest_weight``. λ = ``regularization`` is the weight of
    the divergence from the uniform policy. Decisions are made by π = ε / M + (1 − ε) p.

    Reference: Williams (1992), with b the baseline; Pan et al. (2019) for contexts; Ionides (2008)
    for truncated weights.

    *Departs from the papers:* every update trains on all logged decisions, not only on those of
    the last policy, hence the importance weights. Rewards are divided by their deviation. Of the
    heuristics of Pan et al. (a greed that grows with time, dropout in the actor) there is none.
    """

    regularization: float = 0.01
    largest_weight: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative("regularization", self.regularization)
        positive("largest_weight", self.largest_weight)

    def design(self, problem: Problem) -> "PolicyDesign":
        from submax.models.nn.designs.policy_design import PolicyDesign

        return PolicyDesign(
            sizes=problem.space.choices,
            reals=0,
            context_width=problem.context_width,
            hidden=self.hidden,
            latent=0,
            draws=1,
            components=0,
            regularization=self.regularization,
            largest_weight=self.largest_weight,
            listed=0,
        )

    def columns(self, state: PolicyNetwork, rng: np.random.Generator) -> Floats:
        """Return (r − b) / s and log q of every row: ``[R, rows, 2]``."""
        problem = state.problem
        return weighted_advantages(problem.scale, problem.space, state.buffer)
