"""The belief of an estimator that trains a network."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Actions, Floats, Integers
from submax.core.conditioning.belief import Belief
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.core.spaces.real_space import RealSpace
from submax.core.spaces.space import Space
from submax.estimators.network_params import NetworkParams
from submax.models.networks.decoded_choices import DecodedChoices
from submax.models.networks.decoded_density import DecodedDensity
from submax.models.networks.mixture_density import MixtureDensity
from submax.models.networks.slot_choices import (
    choice_probabilities,
    first_choices,
    joint_probabilities,
)
from submax.models.networks.slot_network import SlotNetwork
from submax.strategies.observation_weights import ObservationWeights


class NetworkBelief(Belief, ObservationWeights):
    """The belief that the network of ``params`` gives in ``context [R, n, D]``.

    π(a | c, l) = (1/Z) Σ_z Π_s p(a_s | c, l, z), averaged over Z draws z of the network's latent
    variable; s runs over slots. If actions have real-valued parts, the product has one more factor:
    a mixture density of these parts with this number of ``components``, see `MixtureDensity`. The
    network is evaluated when a probability is first asked for, not when the belief is made.

    ``values`` computes `Belief.values`. It is called only if a strategy asks for the values, since
    it evaluates the network in the contexts of stored rows.
    """

    def __init__(
        self,
        params: NetworkParams,
        context: Floats,
        components: int,
        values: Callable[[], Floats],
    ) -> None:
        self._params = params
        self._context = context
        self._components = components
        self._compute_values = values

    @property
    def space(self) -> Space:
        return self._params.problem.space

    def levels(self) -> Floats:
        return self._params.reward_encoding.levels

    def level_prior(self) -> Floats:
        # The shares [R, 1, L] are those among all stored rows, whatever their contexts.
        share = self._params.level_share
        if self._context.shape[1] == 1:
            return share
        return np.broadcast_to(share, (*self._context.shape[:2], share.shape[2]))

    def values(self) -> Floats:
        return self._compute_values()

    def prob(self, action: Actions) -> Floats:
        shape = (*self._context.shape[:2], *action.shape[2:])
        return self._decoded.prob(np.broadcast_to(action, shape))

    def prob_of_all(self) -> Floats:
        choices = self.space.choices
        return joint_probabilities(self._choice_probabilities, choices).swapaxes(1, 2)

    def prob_of_choices(self) -> list[Floats]:
        mean: Floats = self._choice_probabilities.mean(axis=3).swapaxes(1, 2)
        return np.split(mean, first_choices(self.space.choices)[1:], axis=-1)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Actions:
        return self._decoded.sample(level, count, rng)

    def rows(self, row: Integers) -> ConditionalDistribution:
        return self._decoded.rows(row)

    def observation_weights(self) -> Floats:
        """Return the number of stored rows times the share of each level: ``[R, n, L]``.

        If all rows have the same weight, this is the number of stored rows at each level. Rows of
        all contexts are counted, because the network learns about each context from all of them.
        """
        return self.level_prior() * self._params.buffer.filled[:, None, None]

    def observation_weights_by_slot(self) -> list[Floats]:
        return [self.observation_weights()] * self.space.slots

    @cached_property
    def _decoded(self) -> ConditionalDistribution:
        space = self.space
        if isinstance(space, RealSpace):
            shape = (space.choices, space.reals, self._components)
            return DecodedDensity(MixtureDensity.of(self._outputs(), *shape), space)
        return DecodedChoices(self._choice_probabilities, space.choices)

    @cached_property
    def _choice_probabilities(self) -> Floats:
        """The probability of every choice, ``[R, L, n, Z, sum of choices]``."""
        return choice_probabilities(self._outputs(), self.space.choices)

    def _outputs(self) -> NDArray[np.float32]:
        """Return the outputs of the network, ``[R, L, n, Z, O]``."""
        params, context = self._params, self._context
        scaled = context if params.scaling is None else params.scaling.scaled(context)
        # If there is one replica, `single` is the same network in a form that is faster for one
        # context.
        if params.single is not None and context.shape[1] == 1:
            return params.single.logits(scaled[0, 0])
        assert isinstance(params.network, SlotNetwork), "other networks have a belief of their own"
        return params.network.logits(scaled.astype(np.float64))
