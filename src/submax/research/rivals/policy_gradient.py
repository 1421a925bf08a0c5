"""Policies that train a policy network on logged decisions."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import Count, NonNegative, Positive, Probability
from submax.core.errors import InputError, warn_of_divergence
from submax.core.optional import require_extra
from submax.core.policy import Policy, PolicyTraits
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.rewards import Scale
from submax.core.serialization import serializable
from submax.core.spaces import Choices
from submax.models.memory import Buffer, Memory
from submax.models.networks.choices import (
    DecodedChoices,
    Parameters,
    SlotNetwork,
    choice_probabilities,
    joint_probabilities,
    parameters_where,
)
from submax.models.training_settings import ContextScaling, Minibatches, Training
from submax.policies.arm_statistics import by_rows
from submax.research.rivals.value_networks import ValueBelief, reward_shares

if TYPE_CHECKING:
    from submax.research.rivals.designs import PreferenceDesign


class Advantages(NamedTuple):
    """Rewards on the scale from 0 to 1, ``[R, n]``, with their ``mean`` and ``deviation [R, 1]``.

    The mean is the baseline of Williams (1992). Dividing by the deviation changes no policy, but
    gives the weight of a regularization the same meaning for frequent and rare rewards. It is 1 if
    all rewards are equal.
    """

    reward: Floats
    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, scale: Scale, buffer: Buffer) -> Self:
        """Return the standardized rewards of a buffer."""
        reward = reward_shares(scale, buffer, buffer.reward)
        total = np.maximum(buffer.weight.sum(axis=1, keepdims=True), 1e-300)
        mean = (buffer.weight * reward).sum(axis=1, keepdims=True) / total
        square = (buffer.weight * (reward - mean) ** 2).sum(axis=1, keepdims=True) / total
        return cls(reward, mean, np.where(square > 1e-12, np.sqrt(square), 1.0))

    def above_mean(self, value: Floats) -> Floats:
        """Return (value − mean) / deviation of values ``[R, n]`` or ``[R, n, M]``."""
        shape = (-1, *[1] * (value.ndim - 1))
        return (value - self.mean.reshape(shape)) / self.deviation.reshape(shape)

    def above(self, baseline: Floats) -> Floats:
        """Return (reward − baseline) / deviation, with ``baseline [R, n]``."""
        return (self.reward - baseline) / self.deviation


NUMBERS_AT_ONCE = 2**22
"""About how many numbers of candidates' contexts are held in memory at a time, 16 MB of float32."""


class NearPairs(NamedTuple):
    """The ``partner [R, rows]`` of every row of a buffer, and the ``sign`` of its preference.

    The sign is 1 if the row has the higher reward, −1 if its partner has it, and 0 if the row has
    no partner with another reward.
    """

    partner: Integers
    sign: Floats

    @classmethod
    def drawn(
        cls,
        buffer: Buffer,
        context: NDArray[np.float32],
        candidates: int,
        rng: np.random.Generator,
    ) -> Self:
        """Draw ``candidates`` random rows for each row, and take the nearest with another reward.

        ``context [R, rows, D]`` are the contexts on the scale on which distances are measured. The
        cost grows with the number of rows and not with its square.
        """
        replicas, rows = buffer.reward.shape
        partner = np.zeros((replicas, rows), dtype=np.int64)
        sign = np.zeros((replicas, rows))
        step = max(1, NUMBERS_AT_ONCE // (replicas * candidates * max(context.shape[2], 1)))
        for begin in range(0, rows, step):
            part = slice(begin, begin + step)
            drawn = rng.random((replicas, len(range(rows)[part]), candidates))
            index = (drawn * buffer.filled[:, None, None]).astype(np.int64)
            partner[:, part], sign[:, part] = _nearest(buffer, context, part, index)
        return cls(partner, np.where(buffer.weight > 0, sign, 0.0))

    def of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values ``[R, rows, ...]`` of the partners."""
        return values[np.arange(len(self.partner))[:, None], self.partner]


def _nearest(
    buffer: Buffer, context: NDArray[np.float32], part: slice, index: Integers
) -> tuple[Integers, Floats]:
    """Return the nearest of the candidates ``index [R, m, P]`` and the sign of the preference."""
    replica = np.arange(len(index))[:, None, None]
    apart = context[replica, index] - context[:, part, None]
    higher = np.sign(buffer.reward[:, part, None] - buffer.reward[replica, index])
    distance = np.where(higher == 0, np.inf, np.einsum("rmpd,rmpd->rmp", apart, apart))
    best = distance.argmin(axis=-1)[..., None]
    chosen, sign = (np.take_along_axis(each, best, axis=-1)[..., 0] for each in (index, higher))
    return chosen, sign


@serializable("policy-network")
class PolicyNetwork(NamedTuple):
    """All feedback in a ``buffer``, the trained ``parameters``, and the network as plain arrays.

    The network has one level. ``scaling`` standardizes contexts for it; None if they are not
    standardized. ``critic`` is a value network, for policies that have one.
    """

    problem: Problem
    buffer: Buffer
    parameters: Parameters
    network: SlotNetwork
    scaling: ContextScaling | None = None
    critic: ValueBelief | None = None

    @classmethod
    def empty(
        cls, problem: Problem, replicas: int, hidden: int, critic: ValueBelief | None
    ) -> Self:
        """Return the network before any feedback: the policy is uniform."""
        require_extra("neural", "a policy network", "jax", "equinox", "optax")
        width = sum(problem.space.choices)
        network = SlotNetwork.silent(replicas, 1, 1, problem.context_width, hidden, width)
        return cls(problem, Buffer.empty(problem, replicas), {}, network, None, critic)

    def restricted(self, choices: Choices) -> Self:
        """Return the policy among these choices alone, for deciding."""
        kept = self.problem.space.kept_choices(choices)
        return self._replace(
            problem=self.problem.restricted(choices), network=self.network.restricted(kept)
        )

    @property
    def learned(self) -> Booleans:
        """Which replicas have rows to learn from, ``[R]``."""
        return self.buffer.filled > 0

    def trained(
        self,
        design: Any,
        training: Training,
        columns: Floats,
        news: Booleans,
        rng: np.random.Generator,
    ) -> Self:
        """Return the state with a network that is trained on all rows of the buffer.

        ``columns [R, rows, E]`` take the place of the encoded reward. Replicas that are not in
        ``news [R]`` keep their network.
        """
        from submax.models.nn.training import restored, train

        buffer, space = self.buffer, self.problem.space
        scaling = ContextScaling.of(buffer, 1.0) if training.standardizes else None
        rows = Minibatches.of(buffer, space.scaled(buffer.action), columns, scaling)
        start = self.parameters if training.continued and self.parameters else None
        trained = train(design, training, rows, rng, start)
        none = np.zeros((len(news), 1, 0), dtype=np.float32)
        network = design.exported(restored(design, trained.parameters), none, none[:, :, None])
        warn_of_divergence(trained.diverged)
        # A replica without new rows, or whose training diverged, keeps its network if it has one.
        kept = news & ((trained.diverged < 0) | ~self._has_network)
        return self._replace(
            parameters=parameters_where(kept, trained.parameters, self.parameters),
            network=network.where(kept, self.network),
            scaling=scaling if scaling is None else scaling.where(kept, self.scaling),
        )

    @property
    def _has_network(self) -> Booleans:
        """Which replicas have a trained network, ``[R]``: without training all weights are 0."""
        return np.any(self.network.second_weight != 0, axis=(1, 2, 3))

    def by_choice(self, context: Floats) -> Floats:
        """Return the probability of every choice, slot after slot: ``[R, 1, n, 1, C]``."""
        self.problem.check_context(context)
        if self.scaling is not None:
            context = self.scaling.scaled(context).astype(np.float64)
        return choice_probabilities(self.network.logits(context), self.problem.space.choices)

    def distribution(self, context: Floats) -> DecodedChoices:
        """Return the policy in these contexts ``[R, n, D]``, as a distribution with one level."""
        return DecodedChoices(self.by_choice(context), self.problem.space.choices)

    def listed(self, context: Floats) -> Floats:
        """Return the probability of every joint action in each context: ``[R, n, M]``."""
        return joint_probabilities(self.by_choice(context)[:, 0], self.problem.space.choices)


ALL_ROWS = Memory()
"""All feedback is kept, with full weight."""
DRAWN_AT_ONCE = 2**22
"""About how many intermediate numbers are held in memory, 16 MB of float32; more contexts are
processed in parts."""


@dataclass(frozen=True, kw_only=True)
class PolicyNetworkPolicy(Policy[PolicyNetwork]):
    """Decide by a policy network: π(a | c) = ε / M + (1 − ε) p(a | c), with p the network.

    M is the number of all actions, and ε is ``epsilon``: it bounds the importance weights of later
    updates. The network has two layers of ``hidden`` units and is trained on all
    logged decisions as ``training`` says. A subclass says by which loss (``design``) and on which
    numbers (``columns``). Before the first feedback the policy is uniform.
    """

    epsilon: Probability = 0.05
    hidden: Count = 32
    training: Training = field(default_factory=Training)

    traits = PolicyTraits(trains_models=True, needs_propensities=True)

    @abstractmethod
    def design(self, problem: Problem) -> Any:
        """Return the network design to train."""

    @abstractmethod
    def columns(self, state: PolicyNetwork, rng: np.random.Generator) -> Floats:
        """Return what the loss reads of every row of the buffer beside context and action."""

    def critic(self, problem: Problem, replicas: int) -> ValueBelief | None:
        """Return the value network that the policy learns from; none by default."""
        return None

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> PolicyNetwork:
        if problem.space.reals:
            raise InputError(
                f"the {type(self).__name__} policy is made for choices, and {problem.space} is "
                "real-valued: take fourier-thompson or rcp-cvae-submax"
            )
        return PolicyNetwork.empty(problem, replicas, self.hidden, self.critic(problem, replicas))

    def act(self, state: PolicyNetwork, context: Floats, rng: np.random.Generator) -> ChosenActions:
        shape, space = context.shape[:2], state.problem.space

        def drawn(part: Floats) -> Integers:
            return state.distribution(part).sample(0, 1, rng)[:, :, 0]

        greedy = by_rows(drawn, self._rows_at_once(state), context)
        explores = (rng.random(shape) < self.epsilon) | ~state.learned[:, None]
        uniform = space.uniform(shape, rng)
        action = np.where(explores[..., None], uniform, greedy)
        return ChosenActions(action, self.log_prob(state, context, action))

    def log_prob(self, state: PolicyNetwork, context: Floats, action: Integers) -> Floats:
        state.problem.check_action(action)

        def prob(part: Floats, chosen: Integers) -> Floats:
            return state.distribution(part).prob(chosen)[:, :, 0, 0]

        found = by_rows(prob, self._rows_at_once(state), context, action[:, :, None])
        with np.errstate(divide="ignore"):
            log_prob: Floats = np.log(self._mixed(state, found))
        return log_prob

    def probabilities(self, state: PolicyNetwork, context: Floats) -> Floats:
        state.problem.space.check_listable("a list of probabilities")
        return self._mixed(state, by_rows(state.listed, self._rows_at_once(state), context))

    def update(
        self, state: PolicyNetwork, feedback: Feedback, rng: np.random.Generator
    ) -> PolicyNetwork:
        feedback.check(state.problem)
        news = np.any(feedback.weight > 0, axis=1)
        if not news.any():
            return state
        if self.traits.needs_propensities and feedback.log_prob is None:
            raise InputError(
                f"the {type(self).__name__} policy needs the probability with which each action "
                "was chosen, and log_prob is None: log it, or take a policy such as actor-critic"
            )
        if state.critic is not None:
            critic = state.critic.trained(feedback, self.training, 0.0, rng)
            state = state._replace(critic=critic)
        state = state._replace(buffer=state.buffer.add(feedback, ALL_ROWS, rng))
        columns, design = self.columns(state, rng), self.design(state.problem)
        return state.trained(design, self.training, columns, news, rng)

    def _mixed(self, state: PolicyNetwork, found: Floats) -> Floats:
        """Mix the probabilities of the network with the uniform ones; ``[R, ...]``."""
        uniform = np.exp(-state.problem.space.log_measure)
        learned = state.learned.reshape(-1, *[1] * (found.ndim - 1))
        mixed = self.epsilon * uniform + (1 - self.epsilon) * found
        return np.where(learned, mixed, uniform)

    def _rows_at_once(self, state: PolicyNetwork) -> int:
        """Return how many contexts of each replica are processed together."""
        actions = min(state.problem.space.size, 2**20)
        numbers = state.network.first_bias.size + len(state.learned) * actions
        return max(1, DRAWN_AT_ONCE // numbers)


@dataclass(frozen=True, kw_only=True)
class GradientPolicy(PolicyNetworkPolicy):
    """A policy network that follows a gradient of the expected reward.

    ``regularization`` is the weight of the divergence from the uniform policy.
    """

    regularization: NonNegative = 0.01

    @property
    def largest_weight(self) -> float:
        """The largest importance weight."""
        return 1.0

    def listed_actions(self, problem: Problem) -> int:
        """The number of joint actions whose values the loss reads; none by default."""
        return 0

    def design(self, problem: Problem) -> Any:
        """Return the network design to train."""
        from submax.research.rivals.designs import PolicyDesign

        return PolicyDesign(
            sizes=problem.space.choices,
            context_width=problem.context_width,
            hidden=self.hidden,
            regularization=self.regularization,
            largest_weight=self.largest_weight,
            listed=self.listed_actions(problem),
        )

    def columns(self, state: PolicyNetwork, rng: np.random.Generator) -> Floats:
        """Return what the loss reads of every row of the buffer beside context and action.

        By default these are (r − b) / s and log q of every row: ``[R, rows, 2]``.
        """
        advantages = Advantages.of(state.problem.scale, state.buffer)
        return np.stack([advantages.above(advantages.mean), state.buffer.log_prob], axis=-1)


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


@dataclass(frozen=True, kw_only=True)
class CriticPolicy(GradientPolicy):
    """A policy network that learns from the values v(b, c) of all joint actions b in every context.

    The value network, the critic, has as many units as the policy network and the same training.
    It lists the joint actions, and so does the policy.
    """

    def critic(self, problem: Problem, replicas: int) -> ValueBelief:
        return ValueBelief.empty(problem, replicas, self.hidden)

    def listed_actions(self, problem: Problem) -> int:
        return problem.space.size

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

    traits = PolicyTraits(trains_models=True)


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

    largest_weight: Positive = 10.0

    def residuals(self, state: PolicyNetwork, advantages: Advantages) -> tuple[Floats, Floats]:
        """Return (r − v(a, c)) / s and log q of every row."""
        assert state.critic is not None, "init gives the state a critic"
        residual = advantages.above(state.critic.values_of(state.buffer))
        return residual, state.buffer.log_prob


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

    strength: Positive = 1.0
    candidates: Count = 16

    def design(self, problem: Problem) -> "PreferenceDesign":
        from submax.research.rivals.designs import PreferenceDesign

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
