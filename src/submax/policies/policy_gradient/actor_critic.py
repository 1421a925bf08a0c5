"""A policy network that learns from a value network alone."""

from dataclasses import dataclass

from submax.core.contracts.facts import Facts
from submax.policies.policy_gradient.critic_policy import CriticPolicy


@dataclass(frozen=True)
class ActorCritic(CriticPolicy):
    """Let the actor p follow the values of the critic v: maximize Σ_i Σ_b p(b | c_i) v(b, c_i).

    The sum runs over all logged contexts c_i and all joint actions b. p is a softmax network (in
    each slot), and v a value network that is trained on the rewards. λ = ``regularization`` is the
    weight of the divergence from the uniform policy, which keeps the actor stochastic. Decisions
    are made by π = ε / M + (1 − ε) p. The logged probabilities are not used.

    Reference: Konda and Tsitsiklis (2000); Lei et al. (2022) for contextual bandits, whose actor
    maximizes the same sum under a constraint on its stochasticity.

    *Departs from the papers:* actor and critic are networks and not linear, and both are trained
    again on all rows at each update.
    """

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True)
