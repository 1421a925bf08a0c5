"""What an estimator that trains a network has learned."""

from typing import Any, NamedTuple, Self

from submax.core.arrays import Floats
from submax.core.contracts.problem import Problem
from submax.core.memory.buffer import Buffer
from submax.core.memory.context_scaling import ContextScaling
from submax.core.rewards.reward_encoding import RewardEncoding
from submax.core.running.stored import stored
from submax.models.networks.replicas import Parameters
from submax.models.networks.single_network import SingleNetwork
from submax.models.networks.slot_network import SlotNetwork


@stored("network-params")
class NetworkParams(NamedTuple):
    """The stored rows, the trained parameters by name, and the network as plain arrays.

    ``network`` is a `SlotNetwork`, or a network of another design with its own belief;
    ``reward_encoding`` has the levels at which the network is evaluated; ``latent
    [R, L or 1, Z, J]`` are the draws of the latent variable; ``level_share [R, 1, L]`` is how often
    each level was observed; ``single`` is the network in a form that is fast for single decisions,
    if there is one replica of a `SlotNetwork`; ``scaling`` standardizes contexts for the network,
    None if they are not standardized.
    """

    problem: Problem
    buffer: Buffer
    parameters: Parameters
    network: Any
    reward_encoding: RewardEncoding
    latent: Floats
    level_share: Floats
    single: SingleNetwork | None
    scaling: ContextScaling | None = None

    @classmethod
    def of(
        cls,
        problem: Problem,
        buffer: Buffer,
        parameters: Parameters,
        network: Any,
        encoding: RewardEncoding,
        latent: Floats,
        scaling: ContextScaling | None = None,
    ) -> Self:
        """Return the parameters with the fields that are computed from the others."""
        share = buffer.level_share(encoding)[:, None]
        alone = len(share) == 1 and isinstance(network, SlotNetwork)
        single = SingleNetwork.of(network) if alone else None
        return cls(problem, buffer, parameters, network, encoding, latent, share, single, scaling)
