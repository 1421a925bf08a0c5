"""A policy network with the rows that it is trained on: the state of the gradient policies."""

from typing import Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.core.contracts.problem import Problem
from submax.core.memory.buffer import Buffer
from submax.core.memory.context_scaling import ContextScaling
from submax.core.memory.minibatches import Minibatches
from submax.core.memory.training import Training
from submax.core.numerics.divergence import warn_of_divergence
from submax.core.running.extras import require_extra
from submax.core.running.stored import stored
from submax.core.spaces.real_space import RealSpace
from submax.core.spaces.space import Choices
from submax.models.networks.decoded_choices import DecodedChoices
from submax.models.networks.decoded_density import DecodedDensity
from submax.models.networks.density_head import outputs
from submax.models.networks.mixture_density import MixtureDensity
from submax.models.networks.replicas import Parameters, parameters_where
from submax.models.networks.slot_choices import choice_probabilities, joint_probabilities
from submax.models.networks.slot_network import SlotNetwork
from submax.policies.neural.value_belief import ValueBelief


@stored("policy-network")
class PolicyNetwork(NamedTuple):
    """All feedback in a ``buffer``, the trained ``parameters``, and the network as plain arrays.

    The network has one level. ``scaling`` standardizes contexts for it; None if they are not
    standardized. ``critic`` is a value network, for policies that have one. ``slot_rewards`` has
    the rewards of slots in place of contexts, infinite if unknown, for policies that use them.
    """

    problem: Problem
    buffer: Buffer
    parameters: Parameters
    network: SlotNetwork
    scaling: ContextScaling | None = None
    critic: ValueBelief | None = None
    slot_rewards: Buffer | None = None

    @classmethod
    def empty(
        cls,
        problem: Problem,
        replicas: int,
        hidden: int,
        draws: int = 1,
        components: int = 0,
        critic: ValueBelief | None = None,
    ) -> Self:
        """Return the network before any feedback: the policy is uniform."""
        require_extra("neural", "a policy network", "jax", "equinox", "optax")
        width = outputs(sum(problem.space.choices), problem.space.reals, components)
        network = SlotNetwork.silent(replicas, 1, draws, problem.context_width, hidden, width)
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
        learned: Booleans = self.buffer.filled > 0
        return learned

    def trained(
        self,
        design: Any,
        training: Training,
        columns: Floats,
        news: Booleans,
        latent: Floats,
        levels: Floats,
        rng: np.random.Generator,
    ) -> Self:
        """Return the state with a network that is trained on all rows of the buffer.

        ``columns [R, rows, E]`` take the place of the encoded reward. Replicas that are not in
        ``news [R]`` keep their network. ``latent [R, 1, Z, J]`` are the draws of the latent
        variable that decisions use until the next update, and ``levels [R, 1, E]`` are the
        conditions that decisions ask for; E is 0 for a network without conditions.
        """
        from submax.models.nn.training.parameters import restored
        from submax.models.nn.training.training import train

        buffer, space = self.buffer, self.problem.space
        scaling = ContextScaling.of(buffer, 1.0) if training.standardizes else None
        rows = Minibatches.of(buffer, space.scaled(buffer.action), columns, scaling)
        start = self.parameters if training.continued and self.parameters else None
        trained = train(design, training, rows, rng, start)
        asked = levels.astype(np.float32)
        network = design.exported(restored(design, trained.parameters), asked, latent)
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
        found: Booleans = np.any(self.network.second_weight != 0, axis=(1, 2, 3))
        return found

    def inputs(self, context: Floats) -> Floats:
        """Return contexts as inputs of the network, standardized if ``scaling`` is set."""
        return context if self.scaling is None else self.scaling.scaled(context).astype(np.float64)

    def distribution(self, context: Floats, components: int) -> ConditionalDistribution:
        """Return the policy in these contexts ``[R, n, D]``, as a distribution with one level."""
        self.problem.check_context(context)
        space, output = self.problem.space, self.network.logits(self.inputs(context))
        if isinstance(space, RealSpace):
            shape = (space.choices, space.reals, components)
            return DecodedDensity(MixtureDensity.of(output, *shape), space)
        return DecodedChoices(choice_probabilities(output, space.choices), space.choices)

    def listed(self, context: Floats) -> Floats:
        """Return the probability of every joint action in each context: ``[R, n, M]``."""
        self.problem.check_context(context)
        sizes = self.problem.space.choices
        output = self.network.logits(self.inputs(context))[:, 0]
        return joint_probabilities(choice_probabilities(output, sizes), sizes)
