"""Base class of the policies that train a policy network on logged decisions."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import probability, whole_number
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.memory.memory import Memory
from submax.core.memory.training import Training
from submax.policies.listed import joined, split
from submax.policies.policy_gradient.policy_network import PolicyNetwork

ALL_ROWS = Memory()
"""All feedback is kept, with full weight."""
NUMBERS_AT_ONCE = 2**22
"""About how many intermediate numbers are held in memory, 16 MB of float32; more contexts are
processed in parts."""


@dataclass(frozen=True, kw_only=True)
class PolicyNetworkPolicy(Policy[PolicyNetwork]):
    """Decide by a policy network: π(a | c) = ε / M + (1 − ε) p(a | c), with p the network.

    M is the number, or the volume, of all actions, and ε is ``epsilon``: it bounds the importance
    weights of later updates. The network has two layers of ``hidden`` units and is trained on all
    logged decisions as ``training`` says. A subclass says by which loss (``design``) and on which
    numbers (``columns``). Before the first feedback the policy is uniform.
    """

    epsilon: float = 0.05
    hidden: int = 32
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        probability("epsilon", self.epsilon)
        whole_number("hidden", self.hidden, at_least=1)

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True, needs_propensities=True)

    @property
    def latent_width(self) -> int:
        """The number of dimensions of the network's latent variable (J)."""
        return 0

    @property
    def latent_draws(self) -> int:
        """The number of draws of the latent variable (Z)."""
        return 1

    @property
    def density_components(self) -> int:
        """Components of the density over real-valued parts; 0 if these are refused."""
        return 0

    @abstractmethod
    def design(self, problem: Problem) -> Any:
        """Return the network design to train."""

    @abstractmethod
    def columns(self, state: PolicyNetwork, rng: np.random.Generator) -> Floats:
        """Return what the loss reads of every row of the buffer beside context and action."""

    def conditions(self, state: PolicyNetwork, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return ``columns``, and the condition ``[R, 1, E]`` of decisions, which is empty here."""
        return self.columns(state, rng), np.zeros((len(state.learned), 1, 0))

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> PolicyNetwork:
        if problem.space.reals and not self.density_components:
            raise InputError(
                f"the {type(self).__name__} policy is made for choices, and {problem.space} is "
                "real-valued: take generative-policy-gradient or rcp-cvae-submax"
            )
        return PolicyNetwork.empty(
            problem, replicas, self.hidden, self.latent_draws, self.density_components
        )

    def act(self, state: PolicyNetwork, context: Floats, rng: np.random.Generator) -> ChosenActions:
        shape, space = context.shape[:2], state.problem.space
        drawn = [
            state.distribution(part, self.density_components).sample(0, 1, rng)[:, :, 0]
            for part in split(context, self._rows_at_once(state))
        ]
        explores = (rng.random(shape) < self.epsilon) | ~state.learned[:, None]
        uniform = space.uniform(shape, rng)
        action = np.where(explores[..., None], uniform, joined(drawn)).astype(space.dtype)
        return ChosenActions(action, self.log_prob(state, context, action))

    def log_prob(self, state: PolicyNetwork, context: Floats, action: Actions) -> Floats:
        state.problem.check_action(action)
        rows = self._rows_at_once(state)
        pairs = zip(split(context, rows), split(action[:, :, None], rows), strict=True)
        found = joined(
            [
                state.distribution(part, self.density_components).prob(chosen)[:, :, 0, 0]
                for part, chosen in pairs
            ]
        )
        with np.errstate(divide="ignore"):
            log_prob: Floats = np.log(self._mixed(state, found))
        return log_prob

    def probabilities(self, state: PolicyNetwork, context: Floats) -> Floats:
        state.problem.space.check_listable("a list of probabilities")
        found = [state.listed(part) for part in split(context, self._rows_at_once(state))]
        probabilities: Floats = self._mixed(state, joined(found))
        return probabilities

    def update(
        self, state: PolicyNetwork, feedback: Feedback, rng: np.random.Generator
    ) -> PolicyNetwork:
        feedback.check(state.problem)
        news = np.any(feedback.weight > 0, axis=1)
        if not news.any():
            return state
        if self.facts.needs_propensities and feedback.log_prob is None:
            raise InputError(
                f"the {type(self).__name__} policy needs the probability with which each action "
                "was chosen, and log_prob is None: log it, or take a policy such as actor-critic"
            )
        state = self.with_critic(state, feedback, rng)
        state = state._replace(buffer=state.buffer.add(feedback, ALL_ROWS, rng))
        columns, levels = self.conditions(state, rng)
        shape = (len(news), 1, self.latent_draws, self.latent_width)
        latent = rng.normal(size=shape)
        design = self.design(state.problem)
        return state.trained(design, self.training, columns, news, latent, levels, rng)

    def with_critic(
        self, state: PolicyNetwork, feedback: Feedback, rng: np.random.Generator
    ) -> PolicyNetwork:
        """Return the state with its value network, if there is one, trained on the feedback."""
        if state.critic is None:
            return state
        critic = state.critic.trained(feedback, self.training, 0.0, rng)
        return state._replace(critic=critic)

    def _mixed(self, state: PolicyNetwork, found: Floats) -> Floats:
        """Mix the probabilities of the network with the uniform ones; ``[R, ...]``."""
        uniform = np.exp(-state.problem.space.log_measure)
        learned = state.learned.reshape(-1, *[1] * (found.ndim - 1))
        mixed = self.epsilon * uniform + (1 - self.epsilon) * found
        probabilities: Floats = np.where(learned, mixed, uniform)
        return probabilities

    def _rows_at_once(self, state: PolicyNetwork) -> int:
        """Return how many contexts of each replica are processed together."""
        space = state.problem.space
        actions = 1 if space.reals else min(space.size, 2**20)
        numbers = state.network.first_bias.size + len(state.learned) * actions
        return max(1, NUMBERS_AT_ONCE // numbers)
