"""Direct preference optimization on pairs of logged decisions."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive, whole_number
from submax.core.contracts.problem import Problem
from submax.core.memory.context_scaling import ContextScaling
from submax.policies.policy_gradient.near_pairs import NearPairs
from submax.policies.policy_gradient.policy_network import PolicyNetwork
from submax.policies.policy_gradient.policy_network_policy import PolicyNetworkPolicy

if TYPE_CHECKING:
    from submax.models.nn.designs.preference_design import PreferenceDesign


@dataclass(frozen=True)
class PreferenceOptimization(PolicyNetworkPolicy):
    """Prefer the decision with the higher reward of two that were made in near contexts.

    The loss of a pair, of which a had the higher reward, is
    −log σ(β (log p(a | c) / q(a | c) − log p(b | c′) / q(b | c′))), with p a softmax network (in
    each slot) and q the logged probability, the reference. β is ``strength``: if a is preferred to
    b with probability σ(v(a) − v(b)), then p ∝ q exp(v / β) has the lowest loss. At every update
    each logged decision is paired with one of ``candidates`` random others: the one in the nearest
    context that had another reward. Decisions are made by π = ε / M + (1 − ε) p.

    Reference: Rafailov et al. (2023).

    *Departs from the paper:* nobody states preferences, rewards are compared instead, and two
    decisions are compared across contexts that are only similar. The reference is the policy that
    made each decision, so it differs between the rows of different batches.
    """

    strength: float = 1.0
    candidates: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("strength", self.strength)
        whole_number("candidates", self.candidates, at_least=1)

    def design(self, problem: Problem) -> "PreferenceDesign":
        from submax.models.nn.designs.preference_design import PreferenceDesign

        return PreferenceDesign(
            problem.space.choices, problem.context_width, self.hidden, self.strength
        )

    def columns(self, state: PolicyNetwork, rng: np.random.Generator) -> Floats:
        """Return the partner's context and action, log q − log q′ and the sign of each row."""
        buffer, context = state.buffer, state.buffer.context.astype(np.float32)
        if self.training.standardizes:
            context = ContextScaling.of(buffer, 1.0).scaled(buffer.context)
        pairs = NearPairs.drawn(buffer, context, self.candidates, rng)
        difference = buffer.log_prob - pairs.of(buffer.log_prob)
        last = np.stack([difference, pairs.sign], axis=-1)
        return np.concatenate([pairs.of(context), pairs.of(buffer.action), last], axis=-1)
