"""Conditioned probabilities by networks: a softmax in each slot, and the paper's CVAE."""

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import Allowed, Count, NonNegative, one_of
from submax.core.conditioning import Belief, ConditionalDistribution, Estimator
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.core.policy import PolicyTraits
from submax.core.problem import Feedback, Problem
from submax.core.rewards import RewardEncoding
from submax.core.serialization import serializable
from submax.core.spaces import Box, Space
from submax.models.memory import Buffer, Memory, importance_values
from submax.models.networks.choices import (
    INJECTION_FORMS,
    DecodedChoices,
    Parameters,
    SlotNetwork,
    choice_probabilities,
    first_choices,
    joint_probabilities,
)
from submax.models.networks.densities import MixtureDensity, outputs
from submax.models.training_settings import ContextScaling, Training

if TYPE_CHECKING:
    from submax.models.nn.designs import CVAEDesign, SoftmaxDesign


@serializable("network-params")
class NetworkParams(NamedTuple):
    """The stored rows, the trained parameters ``[R, P]``, and the network as plain arrays.

    ``reward_encoding`` has the levels at which the network is evaluated; ``latent
    [R, L or 1, Z, J]`` are the draws of the latent variable; ``level_share [R, 1, L]`` is how often
    each level was observed; ``scaling`` standardizes contexts, None if they are not standardized.
    """

    problem: Problem
    buffer: Buffer
    parameters: Parameters | None
    network: SlotNetwork
    reward_encoding: RewardEncoding
    latent: Floats
    level_share: Floats
    scaling: ContextScaling | None = None


@dataclass
class NetworkBelief(Belief):
    """The belief that the network of ``params`` gives in ``context [R, n, D]``.

    π(a | c, l) = (1/Z) Σ_z Π_s p(a_s | c, l, z), averaged over Z draws z of the network's latent
    variable; s runs over slots. Real-valued parts of an action have a `MixtureDensity` as one more
    factor. The network is evaluated when a probability is first asked for.
    """

    estimator: Any
    params: NetworkParams
    context: Floats

    @property
    def space(self) -> Space:
        return self.params.problem.space

    def levels(self) -> Floats:
        return self.params.reward_encoding.levels

    def level_prior(self) -> Floats:
        # The shares [R, 1, L] are those among all stored rows, whatever their contexts.
        share = self.params.level_share
        if self.context.shape[1] == 1:
            return share
        return np.broadcast_to(share, (*self.context.shape[:2], share.shape[2]))

    def values(self) -> Floats:
        """Return V_l, summed over the rows whose reward is not 0, some rows at a time."""
        numbers = self.params.level_share.size * self.estimator.draws * self.estimator.hidden
        return importance_values(self.estimator, self.params, numbers)

    def prob(self, action: Actions) -> Floats:
        shape = (*self.context.shape[:2], *action.shape[2:])
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

        The network learns about each context from rows of all contexts.
        """
        return self.level_prior() * self.params.buffer.filled[:, None, None]

    @cached_property
    def _decoded(self) -> ConditionalDistribution:
        space = self.space
        if isinstance(space, Box):
            return MixtureDensity.of(self._outputs(), space, self.estimator.components)
        return DecodedChoices(self._choice_probabilities, space.choices)

    @cached_property
    def _choice_probabilities(self) -> Floats:
        """The probability of every choice, ``[R, L, n, Z, sum of choices]``."""
        return choice_probabilities(self._outputs(), self.space.choices)

    def _outputs(self) -> NDArray[np.float32]:
        """Return the outputs of the network, ``[R, L, n, Z, O]``."""
        scaling = self.params.scaling
        context = self.context if scaling is None else scaling.scaled(self.context)
        return self.params.network.logits(context.astype(np.float64))


class NetworkEstimator(Estimator[NetworkParams]):
    """A network that JAX trains on the stored rows, for all replicas together.

    An input of the network is the reward, encoded by linear interpolation between the two nearest
    bin edges, so any reward can be conditioned on. Before the first feedback all probabilities are
    equal.
    """

    training: Training
    memory: Memory
    hidden: int

    draws: int = 1
    """The number Z of latent draws, the parts of the mixture; 1 without a latent variable."""
    components: int = 0
    """Mixture components of the density over real-valued parts of an action."""
    largest_deviation: ClassVar[float] = 0.0
    """Deviation up to which a feature is not scaled down, if contexts are standardized."""

    @abstractmethod
    def design(self, problem: Problem) -> Any:
        """Return the network design to train."""

    def drawn(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Floats:
        """Draw the latent variable, ``[R, L or 1, Z, J]``; J is 0 if there is none."""
        return np.zeros((replicas, 1, self.draws, 0))

    @property
    def traits(self) -> PolicyTraits:
        return PolicyTraits(trains_models=True, forgets=self.memory.forgets)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> NetworkParams:
        who = f"the {type(self).__name__} estimator"
        if problem.space.reals and not self.components:
            raise InputError(
                f"{who} needs discrete choices, but {problem.space} is real-valued: use the CVAE"
            )
        require_extra("neural", who, "jax", "equinox", "optax")
        nothing = np.zeros((replicas, 0))
        encoding = problem.scale.reward_encoding(nothing, nothing)
        buffer = Buffer.empty(problem, replicas)
        latent = np.zeros((replicas, 1, self.draws, 0))
        # All outputs are 0, so all probabilities are equal.
        space = problem.space
        shape = (replicas, problem.scale.levels, self.draws, problem.context_width, self.hidden)
        width = outputs(sum(space.choices), space.reals, self.components)
        network = SlotNetwork.silent(*shape, width)
        share = buffer.level_share(encoding)[:, None]
        return NetworkParams(problem, buffer, None, network, encoding, latent, share)

    def fit(
        self, params: NetworkParams, feedback: Feedback, rng: np.random.Generator
    ) -> NetworkParams:
        from submax.models.nn.training import refit

        problem = params.problem
        feedback.check(problem)
        news = np.any(feedback.weight > 0, axis=1)
        if not news.any():
            return params
        buffer = params.buffer.add(feedback, self.memory, rng)
        encoding = problem.scale.reward_encoding(buffer.reward, buffer.weight)
        columns = problem.space.scaled(buffer.action), encoding.encoded(buffer.reward)
        start, design = self._start(params, encoding), self.design(problem)
        most = self.largest_deviation

        def exported(parameters: Parameters) -> dict[str, Any]:
            latent = self.drawn(problem, len(news), rng)
            network = self.written(problem, parameters, encoding, latent)
            return {"network": network, "latent": latent, "reward_encoding": encoding}

        fitted: NetworkParams = refit(
            params, buffer, news, design, self.training, columns, rng, exported, start, most
        )
        return fitted._replace(level_share=buffer.level_share(fitted.reward_encoding)[:, None])

    def _start(self, params: NetworkParams, encoding: RewardEncoding) -> Parameters | None:
        """Return the parameters to continue training from, for bin edges that may have moved."""
        from submax.models.nn.training import moved

        goes_on = self.training.continued
        if self.training.stops_early:
            # A memory that forgets moves rows between the training set and the held-out set.
            goes_on = not self.memory.forgets
        if not (goes_on and params.parameters is not None):
            return None
        if np.array_equal(encoding.bin_edges, params.reward_encoding.bin_edges):
            return params.parameters
        encoded_edges = params.reward_encoding.encoded(encoding.bin_edges).astype(np.float32)
        return moved(self.design(params.problem), params.parameters, encoded_edges)

    def written(
        self, problem: Problem, parameters: Parameters, encoding: RewardEncoding, latent: Floats
    ) -> Any:
        """Return the trained network as plain arrays, evaluated at the levels."""
        from submax.models.nn.training import restored

        levels = encoding.encoded(encoding.levels).astype(np.float32)
        return restored(self.design(problem), parameters).exported(levels, latent)

    def belief(self, params: NetworkParams, context: Floats) -> NetworkBelief:
        return NetworkBelief(self, params, context)


@dataclass(frozen=True)
class Softmax(NetworkEstimator):
    """π(a | c, r) = Π_s softmax(h_s(c, r)), with h a network without a latent variable.

    It is made for one slot. The choices of several slots are independent given context and reward;
    a `CVAE` can also represent dependent choices.
    """

    hidden: Count = 32
    injection: Annotated[str, Allowed(one_of, INJECTION_FORMS)] = "modulation"
    training: Training = field(default_factory=Training)
    memory: Memory = field(default_factory=Memory)

    def design(self, problem: Problem) -> "SoftmaxDesign":
        from submax.models.nn.designs import SoftmaxDesign

        return SoftmaxDesign(
            problem.space.choices,
            problem.context_width,
            problem.scale.width,
            self.hidden,
            self.injection,
        )


@dataclass(frozen=True)
class CVAE(NetworkEstimator):
    """π(a | c, r) ≈ (1/N_z) Σ_i p(a | c, r, z_i) with p a product of softmaxes, one in each slot.

    Over real-valued parts of an action p is a mixture of ``components`` densities.

    N_z is ``draws``: so many draws of a latent variable of width ``latent`` are taken from N(0, 1)
    at every update and kept, so decisions and their probabilities agree. All reward levels
    use the same draws if ``shared_draws`` is set; with separate draws, the difference between two
    levels is mostly noise. ``kl_weight`` is β, the weight of the Kullback-Leibler term.
    ``injection`` is the way in which the reward enters the layers; ``"input-concatenation"``, the
    naive way, is there for comparison.

    Reference: Xu et al. (2024), section 4.3.

    *Departs from the paper:* the draws are kept between updates and shared by the levels. The
    reward is encoded by interpolation between bin edges (one-hot if the reward is an edge), because
    a gate that multiplies by a reward of 0 would pass nothing. Real-valued actions are not in the
    paper.
    """

    hidden: Count = 32
    latent: Count = 8
    draws: Count = 5
    kl_weight: NonNegative = 0.5
    injection: Annotated[str, Allowed(one_of, INJECTION_FORMS)] = "modulation"
    shared_draws: bool = True
    components: Count = 4
    training: Training = field(default_factory=Training)
    memory: Memory = field(default_factory=Memory)

    largest_deviation = 1.0
    """The deviation of the latent variable: smaller features would be drowned by it."""

    def design(self, problem: Problem) -> "CVAEDesign":
        from submax.models.nn.designs import CVAEDesign

        return CVAEDesign(
            problem.space.choices,
            problem.space.reals,
            problem.context_width,
            problem.scale.width,
            self.hidden,
            self.latent,
            self.injection,
            self.kl_weight,
            self.components,
        )

    def drawn(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Floats:
        levels = 1 if self.shared_draws else problem.scale.levels
        return rng.normal(size=(replicas, levels, self.draws, self.latent))
