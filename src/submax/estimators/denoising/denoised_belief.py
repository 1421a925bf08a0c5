"""The belief of an estimator that removes noise from actions."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.core.spaces.real_space import RealSpace
from submax.estimators.network_belief import NetworkBelief
from submax.estimators.network_params import NetworkParams
from submax.models.networks.decoded_choices import DecodedChoices
from submax.models.networks.decoded_density import DecodedDensity
from submax.models.networks.denoising_network import DenoisingNetwork
from submax.models.networks.mixture_density import MixtureDensity
from submax.models.networks.slot_choices import choice_probabilities


class DenoisedBelief(NetworkBelief):
    """The mixture over the K paths of a denoising network, whose ends are blurred.

    If a path ends at y, with numbers between 0 and 1, then a slot has the probabilities
    softmax(y / τ), and a real-valued part has a logistic density at y with the scale τ, truncated
    to the range from 0 to 1; τ is ``spread``. ``guidance`` is that of `DenoisingNetwork.denoised`.
    """

    def __init__(
        self,
        params: NetworkParams,
        context: Floats,
        guidance: float,
        spread: float,
        values: Callable[[], Floats],
    ) -> None:
        super().__init__(params, context, 1, values)
        self._guidance = guidance
        self._spread = spread

    @cached_property
    def _decoded(self) -> ConditionalDistribution:
        space = self.space
        if not isinstance(space, RealSpace):
            return DecodedChoices(self._choice_probabilities, space.choices)
        ends = self._ends.astype(np.float64)
        choices, numbers = np.split(ends, [sum(space.choices)], axis=-1)
        mixture = MixtureDensity(
            choice_probabilities(self._outputs(), space.choices) if space.choices else choices,
            np.ones((*ends.shape[:-1], 1)),
            numbers[..., None, :],
            np.full((*ends.shape[:-1], 1, space.reals), self._spread),
        )
        return DecodedDensity(mixture, space)

    def _outputs(self) -> NDArray[np.float32]:
        """Return the logits of all choices, ``[R, L, n, K, C]``."""
        choices: NDArray[np.float32] = self._ends[..., : sum(self.space.choices)]
        return choices / np.float32(self._spread)

    @cached_property
    def _ends(self) -> NDArray[np.float32]:
        """The ends of all paths, on the scale from 0 to 1: ``[R, L, n, K, W]``."""
        params, context = self._params, self._context
        if params.scaling is not None:
            context = params.scaling.scaled(context).astype(np.float64)
        assert isinstance(params.network, DenoisingNetwork)
        ends = (params.network.denoised(context, self._guidance) + 1) / 2
        # A prediction far outside of the range would overflow nothing, but means the same.
        found: NDArray[np.float32] = np.clip(ends, -1.0, 2.0)
        return found
