"""Policies that train a policy network on logged decisions, by gradients of the reward."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import Count, NonNegative, Positive, Probability
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.core.policy import Policy, PolicyTraits
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.memory import Buffer
from submax.models.networks.choices import (
    DecodedChoices,
    Parameters,
    SlotNetwork,
    choice_probabilities,
    joint_probabilities,
)
from submax.models.training_settings import ContextScaling, Training
from submax.policies.arm_statistics import EVERYTHING, by_rows
from submax.policies.slots import check_choices
from submax.research.rivals.value_networks import ValueBelief, reward_shares

if TYPE_CHECKING:
    from submax.research.rivals.designs import PolicyDesign

NUMBERS_AT_ONCE = 2**22
"""About how many intermediate numbers are held in memory, 16 MB of float32; more contexts are
processed in parts."""


@serializable("policy-network")
class PolicyNetwork(NamedTuple):
    """All feedback in a ``buffer``, the trained ``parameters``, and the network as plain arrays.

    The network has one level. ``scaling`` standardizes contexts for it; None if they are not
    standardized. ``critic`` is a value network, for policies that have one.
    """

    problem: Problem
    buffer: Buffer
    parameters: Parameters | None
    network: SlotNetwork
    scaling: ContextScaling | None = None
    critic: ValueBelief | None = None

    def restricted(self, choices: Choices) -> Self:
        kept = self.problem.space.kept_choices(choices)
        return self._replace(
            problem=self.problem.restricted(choices), network=self.network.restricted(kept)
        )

    @property
    def learned(self) -> Booleans:
        """Which replicas have rows to learn from, ``[R]``."""
        return self.buffer.filled > 0

    @property
    def rows_at_once(self) -> int:
        """The number of contexts of each replica that are processed together."""
        actions = min(self.problem.space.size, 2**20)
        numbers = self.network.first_bias.size + len(self.learned) * actions
        return max(1, NUMBERS_AT_ONCE // numbers)

    def distribution(self, context: Floats) -> DecodedChoices:
        """Return the policy in these contexts ``[R, n, D]``, as a distribution with one level."""
        self.problem.check_context(context)
        if self.scaling is not None:
            context = self.scaling.scaled(context).astype(np.float64)
        sizes = self.problem.space.choices
        return DecodedChoices(choice_probabilities(self.network.logits(context), sizes), sizes)


@dataclass(frozen=True, kw_only=True)
class GradientPolicy(Policy[PolicyNetwork]):
    """Decide by a policy network that follows a gradient of the expected reward.

    π(a | c) = ε / M + (1 − ε) p(a | c), with p the network. M is the number of all actions, and ε
    is ``epsilon``: it bounds the importance weights of later updates. The network has two layers of
    ``hidden`` units and is trained on all logged decisions as ``training`` says.
    ``regularization`` is the weight of the divergence from the uniform policy. Before the first
    feedback the policy is uniform.

    With a critic, the policy learns from the values v(b, c) of all joint actions b in every
    context instead. This value network has as many units as the policy network and the same
    training. It lists the joint actions, and so does the policy.
    """

    epsilon: Probability = 0.05
    hidden: Count = 32
    training: Training = field(default_factory=Training)
    regularization: NonNegative = 0.01

    traits = PolicyTraits(trains_models=True, needs_propensities=True)
    has_critic: ClassVar[bool] = True

    @property
    def largest_weight(self) -> float:
        return 1.0

    def design(self, problem: Problem) -> "PolicyDesign":
        from submax.research.rivals.designs import PolicyDesign

        return PolicyDesign(
            sizes=problem.space.choices,
            context_width=problem.context_width,
            hidden=self.hidden,
            regularization=self.regularization,
            largest_weight=self.largest_weight,
            listed=problem.space.size if self.has_critic else 0,
        )

    def columns(self, problem: Problem, buffer: Buffer, critic: ValueBelief | None) -> Floats:
        """Return what the loss reads of every row of the buffer beside context and action.

        These are (r − r̄) / s and log q, ``[R, rows, 2]``, or with a critic (v(b, c) − r̄) / s of
        all joint actions b, ``[R, rows, M]``. Rewards are on the scale from 0 to 1. Their mean r̄ is
        the baseline of Williams (1992). Dividing by their deviation s, 1 if all are equal, changes
        no policy, but gives the weight of a regularization the same meaning for frequent and rare
        rewards.
        """
        reward = reward_shares(problem.scale, buffer, buffer.reward)
        total = np.maximum(buffer.weight.sum(axis=1, keepdims=True), 1e-300)
        mean = (buffer.weight * reward).sum(axis=1, keepdims=True) / total
        square = (buffer.weight * (reward - mean) ** 2).sum(axis=1, keepdims=True) / total
        deviation = np.where(square > 1e-12, np.sqrt(square), 1.0)
        if critic is None:
            return np.stack([(reward - mean) / deviation, buffer.log_prob], axis=-1)
        values = critic.values(buffer.context.astype(np.float64))
        return (values - mean[..., None]) / deviation[..., None]

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> PolicyNetwork:
        check_choices(f"the {type(self).__name__} policy", problem.space)
        critic = ValueBelief.empty(problem, replicas, self.hidden) if self.has_critic else None
        require_extra("neural", "a policy network", "jax", "equinox", "optax")
        width = sum(problem.space.choices)
        network = SlotNetwork.silent(replicas, 1, 1, problem.context_width, self.hidden, width)
        return PolicyNetwork(problem, Buffer.empty(problem, replicas), None, network, critic=critic)

    def act(self, state: PolicyNetwork, context: Floats, rng: np.random.Generator) -> ChosenActions:
        shape, space = context.shape[:2], state.problem.space

        def drawn(part: Floats) -> Integers:
            return state.distribution(part).sample(0, 1, rng)[:, :, 0]

        greedy = by_rows(drawn, state.rows_at_once, context)
        explores = (rng.random(shape) < self.epsilon) | ~state.learned[:, None]
        uniform = space.uniform(shape, rng)
        action = np.where(explores[..., None], uniform, greedy)
        return ChosenActions(action, self.log_prob(state, context, action))

    def log_prob(self, state: PolicyNetwork, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)

        def prob(part: Floats, chosen: Integers) -> Floats:
            return state.distribution(part).prob(chosen)[:, :, 0, 0]

        found = by_rows(prob, state.rows_at_once, context, action[:, :, None])
        with np.errstate(divide="ignore"):
            log_prob: Floats = np.log(self._mixed(state, found))
        return log_prob

    def probabilities(self, state: PolicyNetwork, context: Floats) -> Floats:
        space = state.problem.space
        space.check_listable("a list of probabilities")

        def listed(part: Floats) -> Floats:
            return joint_probabilities(state.distribution(part).probabilities[:, 0], space.choices)

        return self._mixed(state, by_rows(listed, state.rows_at_once, context))

    def update(
        self, state: PolicyNetwork, feedback: Feedback, rng: np.random.Generator
    ) -> PolicyNetwork:
        from submax.models.nn.training import refit, restored

        feedback.check(state.problem)
        news = np.any(feedback.weight > 0, axis=1)
        if not news.any():
            return state
        if self.traits.needs_propensities and feedback.log_prob is None:
            raise InputError(
                f"the {type(self).__name__} policy needs the probability with which each action "
                "was chosen, and log_prob is None: log it, or use a policy such as actor-critic"
            )
        critic = state.critic and state.critic.trained(feedback, self.training, 0.0, rng)
        state, problem = state._replace(critic=critic), state.problem
        buffer, design = state.buffer.add(feedback, EVERYTHING, rng), self.design(problem)
        columns = problem.space.scaled(buffer.action), self.columns(problem, buffer, critic)
        start = state.parameters if self.training.continued else None
        none = np.zeros((len(news), 1, 0), dtype=np.float32)

        def exported(parameters: Parameters) -> dict[str, Any]:
            return {"network": restored(design, parameters).exported(none, none[:, :, None])}

        found: PolicyNetwork = refit(
            state, buffer, news, design, self.training, columns, rng, exported, start, 1.0
        )
        return found

    def _mixed(self, state: PolicyNetwork, found: Floats) -> Floats:
        """Mix the probabilities of the network with the uniform ones; ``[R, ...]``."""
        uniform = np.exp(-state.problem.space.log_measure)
        learned = state.learned.reshape(-1, *[1] * (found.ndim - 1))
        return np.where(learned, self.epsilon * uniform + (1 - self.epsilon) * found, uniform)


@dataclass(frozen=True)
class PolicyGradient(GradientPolicy):
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

    largest_weight: Positive = 10.0
    has_critic = False


@dataclass(frozen=True)
class ActorCritic(GradientPolicy):
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

    traits = PolicyTraits(trains_models=True)
