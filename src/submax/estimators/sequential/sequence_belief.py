"""The belief of an estimator that trains an autoregressive network."""

import sys
from functools import cached_property

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.conditioning.belief import sums_by_slot
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.estimators.network_belief import NetworkBelief
from submax.models.networks.autoregressive_network import AutoregressiveNetwork
from submax.models.networks.decoded_sequence import DecodedSequence

MANY_CONTEXTS = 256
"""With fewer contexts, the processor answers before an accelerator has received the network."""


class SequenceBelief(NetworkBelief):
    """The belief that an autoregressive network gives; slots depend on the slots before them.

    The probabilities of a slot's choices are sums over joint actions, which are listed for them.
    """

    def prob(self, action: Actions) -> Floats:
        return self._distribution.prob(action)

    def prob_of_all(self) -> Floats:
        return self._sequence.prob_of_all()

    def prob_of_choices(self) -> list[Floats]:
        self.space.check_listable("the belief of an autoregressive network", "take a CVAE")
        return sums_by_slot(self.prob_of_all(), self.space.choices)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Actions:
        return self._distribution.sample(level, count, rng)

    def rows(self, row: Integers) -> ConditionalDistribution:
        return self._distribution.rows(row)

    @cached_property
    def _distribution(self) -> ConditionalDistribution:
        """The distribution of single actions, on an accelerator if it has trained the network."""
        sequence = self._sequence
        jax = sys.modules.get("jax")
        many = sequence.given[:, 0, :, 0].size >= MANY_CONTEXTS
        if jax is None or not many or jax.default_backend() == "cpu":
            return sequence
        from submax.models.nn.decoding.device_sequence import DeviceSequence

        return DeviceSequence.of(sequence.network, sequence.given, sequence.sizes)

    @cached_property
    def _sequence(self) -> DecodedSequence:
        params, context = self._params, self._context
        if params.scaling is not None:
            context = params.scaling.scaled(context).astype(np.float64)
        assert isinstance(params.network, AutoregressiveNetwork)
        return DecodedSequence(params.network, params.network.given(context), self.space.choices)
