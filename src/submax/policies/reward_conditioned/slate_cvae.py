"""A slate CVAE that is conditioned on a response for each slot."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import non_negative, probability, whole_number
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.memory.buffer import Buffer
from submax.core.memory.memory import Memory
from submax.core.rewards.quantile_levels import quantile_encoding
from submax.policies.neural.value_belief import ValueBelief
from submax.policies.policy_gradient.policy_network import PolicyNetwork
from submax.policies.policy_gradient.policy_network_policy import PolicyNetworkPolicy
from submax.policies.reward_conditioned.slot_responses import slot_responses

if TYPE_CHECKING:
    from submax.models.nn.designs.slate_cvae_design import SlateCVAEDesign

BIN_EDGES = 5
"""Number of quantiles of a slot's responses by which a response is encoded, as for rewards."""


@dataclass(frozen=True)
class SlateCVAE(PolicyNetworkPolicy):
    """Learn p(a | c, ρ_1 … ρ_S) from responses ρ_s of the slots, and ask for a high one in each.

    π(a | c) = (1/Z) Σ_z p(a | c, ρ*, z) with p the decoder of a CVAE, a softmax in each slot. z has
    ``latent`` dimensions, Z is ``draws``, and the weight of the Kullback-Leibler term is
    ``kl_weight``. ρ* is the ``quantile`` of the responses of each slot. The response of a slot is
    its reward (`Feedback.slot_reward`) if it is known. Otherwise it is computed from the reward of
    the joint action: by what the slot's choice is worth compared with ``alternatives`` random other
    choices, by a value network (`slot_responses`). Decisions are made by ε / M + (1 − ε) π.

    Reference: Jiang et al. (2019), List-CVAE.

    *Departs from the paper:* if only the joint action has a reward, the responses of slots are
    computed instead of being observed. The prior of z does not depend on the condition. The paper
    embeds documents; here every slot has choices of its own.
    """

    latent: int = 8
    draws: int = 5
    kl_weight: float = 0.5
    quantile: float = 0.99
    alternatives: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("latent", "draws", "alternatives"):
            whole_number(name, getattr(self, name), at_least=1)
        non_negative("kl_weight", self.kl_weight)
        probability("quantile", self.quantile)

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True)

    @property
    def latent_width(self) -> int:
        return self.latent

    @property
    def latent_draws(self) -> int:
        return self.draws

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> PolicyNetwork:
        state = super().init(problem, replicas, rng)
        # The buffer of slot rewards is like that of decisions, but for the width of its contexts.
        as_context = Problem(problem.space, problem.space.slots, problem.scale)
        return state._replace(
            critic=ValueBelief.unlisted(problem, replicas, self.hidden),
            slot_rewards=Buffer.empty(as_context, replicas),
        )

    def with_critic(
        self, state: PolicyNetwork, feedback: Feedback, rng: np.random.Generator
    ) -> PolicyNetwork:
        """Return the state with a trained value network and with the rewards of slots."""
        assert state.slot_rewards is not None, "init gives the state a buffer of slot rewards"
        given = feedback.slot_reward
        known = np.full(feedback.action.shape, np.inf) if given is None else given
        known = np.where(np.isfinite(known), known, np.inf)
        slot_rewards = state.slot_rewards.add(feedback._replace(context=known), Memory(), rng)
        return super().with_critic(state, feedback, rng)._replace(slot_rewards=slot_rewards)

    def design(self, problem: Problem) -> "SlateCVAEDesign":
        from submax.models.nn.designs.slate_cvae_design import SlateCVAEDesign

        return SlateCVAEDesign(
            sizes=problem.space.choices,
            reals=0,
            context_width=problem.context_width,
            reward_width=BIN_EDGES * problem.space.slots,
            hidden=self.hidden,
            latent=self.latent,
            injection="modulation",
            kl_weight=self.kl_weight,
            components=0,
        )

    def columns(self, state: PolicyNetwork, rng: np.random.Generator) -> Floats:
        return self.conditions(state, rng)[0]

    def conditions(self, state: PolicyNetwork, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the encoded responses of every row, and those that decisions ask for."""
        assert state.critic is not None, "init gives the state a critic"
        buffer, sizes = state.buffer, state.problem.space.choices
        shape = (*buffer.reward.shape, self.alternatives)
        drawn = np.stack([rng.integers(size, size=shape) for size in sizes], axis=2)
        responses = slot_responses(state.critic, buffer, drawn)
        assert state.slot_rewards is not None, "init gives the state a buffer of slot rewards"
        known = state.slot_rewards.context
        responses = np.where(np.isfinite(known), known, responses)
        columns, asked = [], []
        for slot in range(len(sizes)):
            response = np.where(buffer.weight > 0, responses[..., slot], 0.0)
            shares = (0.0, self.quantile)
            encoding = quantile_encoding(response, buffer.weight, shares, 2, BIN_EDGES)
            columns.append(encoding.encoded(response))
            asked.append(encoding.encoded(encoding.levels[:, -1:]))
        return np.concatenate(columns, axis=-1), np.concatenate(asked, axis=-1)
