"""Policy gradient with a value network as control variate."""

from dataclasses import dataclass

from submax.core.arrays import Floats
from submax.core.checks import positive
from submax.policies.policy_gradient.advantages import Advantages
from submax.policies.policy_gradient.critic_policy import CriticPolicy
from submax.policies.policy_gradient.policy_network import PolicyNetwork


@dataclass(frozen=True)
class DoublyRobustGradient(CriticPolicy):
    """Follow the gradient of the doubly robust estimate of the expected reward.

    The gradient is Σ_i [Σ_b v(b, c_i) ∇p(b | c_i) + w_i (r_i − v(a_i, c_i)) ∇ log p(a_i | c_i)],
    with p a softmax network (in each slot), v a value network over all joint actions b, and
    w_i = min(p(a_i | c_i) / q_i, W) the importance weight of a decision that was made with
    probability q_i. W is ``largest_weight``. λ = ``regularization`` is the weight of the
    divergence from the uniform policy. If v is exact, single rows have no variance; if q is exact
    and W large, the gradient is unbiased whatever v is. Decisions are made by
    π = ε / M + (1 − ε) p.

    Reference: Huang and Jiang (2020); Dudík et al. (2011) for the estimate.

    *Departs from the paper:* there is one step instead of a trajectory. The value network is
    trained on the same rows, and importance weights are truncated.
    """

    largest_weight: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("largest_weight", self.largest_weight)

    @property
    def weight_limit(self) -> float:
        return self.largest_weight

    def residuals(self, state: PolicyNetwork, advantages: Advantages) -> tuple[Floats, Floats]:
        """Return (r − v(a, c)) / s and log q of every row."""
        assert state.critic is not None, "init gives the state a critic"
        residual = advantages.above(state.critic.values_of(state.buffer))
        return residual, state.buffer.log_prob
