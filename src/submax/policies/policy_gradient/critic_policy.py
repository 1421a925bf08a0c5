"""Base class of the policies with a policy network and a value network."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative
from submax.core.contracts.problem import Problem
from submax.policies.neural.value_belief import ValueBelief
from submax.policies.policy_gradient.advantages import Advantages
from submax.policies.policy_gradient.policy_network import PolicyNetwork
from submax.policies.policy_gradient.policy_network_policy import PolicyNetworkPolicy

if TYPE_CHECKING:
    from submax.models.nn.designs.policy_design import PolicyDesign


@dataclass(frozen=True, kw_only=True)
class CriticPolicy(PolicyNetworkPolicy):
    """A policy network that learns from the values v(b, c) of all joint actions b in every context.

    The value network, the critic, has as many units as the policy network and the same training.
    It lists the joint actions, and so does the policy. ``regularization`` is the weight of the
    divergence from the uniform policy.
    """

    regularization: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        non_negative("regularization", self.regularization)

    @property
    def weight_limit(self) -> float:
        """The largest importance weight."""
        return 1.0

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> PolicyNetwork:
        state = super().init(problem, replicas, rng)
        return state._replace(critic=ValueBelief.empty(problem, replicas, self.hidden))

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
            largest_weight=self.weight_limit,
            listed=problem.space.size,
        )

    def columns(self, state: PolicyNetwork, rng: np.random.Generator) -> Floats:
        """Return the residual, log q and the values of all joint actions: ``[R, rows, 2 + M]``."""
        assert state.critic is not None, "init gives the state a critic"
        buffer = state.buffer
        advantages = Advantages.of(state.problem.scale, buffer)
        values = advantages.above_mean(state.critic.values(buffer.context.astype(np.float64)))
        residual, log_prob = self.residuals(state, advantages)
        pair = np.stack([residual, log_prob], axis=-1)
        return np.concatenate([pair, values], axis=-1)

    def residuals(self, state: PolicyNetwork, advantages: Advantages) -> tuple[Floats, Floats]:
        """Return what the logged reward adds to the critic, and log q, both ``[R, rows]``."""
        nothing = np.zeros_like(advantages.reward)
        return nothing, nothing
