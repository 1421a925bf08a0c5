"""What the estimators that train a network have in common."""

from abc import abstractmethod
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Actions, Floats
from submax.core.conditioning.conditioned import Conditioned
from submax.core.conditioning.estimator import Estimator
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.memory.buffer import Buffer
from submax.core.memory.context_scaling import ContextScaling
from submax.core.memory.memory import Memory
from submax.core.memory.minibatches import Minibatches
from submax.core.memory.training import Training
from submax.core.numerics.divergence import warn_of_divergence
from submax.core.rewards.reward_encoding import RewardEncoding
from submax.core.running.extras import require_extra
from submax.core.spaces.real_space import RealSpace
from submax.core.spaces.space import Space
from submax.estimators.importance_values import importance_values
from submax.estimators.network_params import NetworkParams
from submax.networks.decoded_choices import DecodedChoices
from submax.networks.decoded_density import DecodedDensity
from submax.networks.density_head import outputs
from submax.networks.mixture_density import MixtureDensity
from submax.networks.replicas import Parameters, parameters_where
from submax.networks.slot_choices import (
    choice_probabilities,
    first_choices,
    joint_probabilities,
)
from submax.networks.slot_network import SlotNetwork


class NetworkEstimator(Estimator[NetworkParams]):
    """A network trained on the feedback that its memory keeps, for all replicas at once, by JAX.

    It is told the reward itself, embedded by its place between bin edges, so that any reward can be
    asked for. Once trained it is evaluated in numpy. Before the first feedback it knows nothing.
    """

    training: Training
    memory: Memory
    hidden: int

    @property
    @abstractmethod
    def latent_draws(self) -> int:
        """Parts of the mixture (Z)."""

    @property
    def components(self) -> int:
        """Components of the density over real-valued parts of an action."""
        return 0

    @property
    def largest_deviation(self) -> float:
        """Deviation up to which a feature is not scaled down, if contexts are standardized."""
        return 0.0

    @abstractmethod
    def design(self, problem: Problem) -> Any:
        """The design to train."""

    @abstractmethod
    def drawn(self, replicas: int, levels: int, rng: np.random.Generator) -> Floats:
        """Draws of the latent variable, ``[R, L or 1, Z, J]``."""

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True, forgets=self.memory.forgets)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> NetworkParams:
        """A network that knows nothing."""
        who = f"the {type(self).__name__} estimator"
        if problem.space.reals and not self.components:
            raise InputError(
                f"{who} is made for choices, and {problem.space} is real-valued: take the CVAE"
            )
        require_extra("neural", who, "jax", "equinox", "optax")
        nothing = np.zeros((replicas, 0))
        encoding = problem.scale.reward_encoding(nothing, nothing)
        latent = np.zeros((replicas, 1, self.latent_draws, 0))
        network = self._silent(problem, replicas, problem.scale.levels)
        return NetworkParams.of(
            problem, Buffer.empty(problem, replicas), {}, network, encoding, latent
        )

    def fit(
        self, params: NetworkParams, feedback: Feedback, rng: np.random.Generator
    ) -> NetworkParams:
        """Train on the feedback kept; without new rows nothing changes."""
        from submax.nn.training.training import train

        problem = params.problem
        feedback.check(problem)
        news = np.any(feedback.weight > 0, axis=1)
        if not news.any():
            return params
        if params.reward_encoding.levels.shape[1] != problem.scale.levels:
            params = self.at_levels(params, _encoding(problem, params.buffer).levels)
        buffer = params.buffer.add(feedback, self.memory, rng)
        encoding = _encoding(problem, buffer)
        scaling = None
        if self.training.standardizes:
            scaling = ContextScaling.of(buffer, self.largest_deviation)
        action, reward = problem.space.scaled(buffer.action), encoding.embedded(buffer.reward)
        rows = Minibatches.of(buffer, action, reward, scaling)
        start, before = self._start(params, encoding), params.buffer.filled
        trained = train(self.design(problem), self.training, rows, rng, start, before)
        latent = self.drawn(len(news), problem.scale.levels, rng)
        network = self._written(problem, trained.parameters, encoding, latent)
        warn_of_divergence(trained.diverged)
        # A replica without news, or whose training diverged, stays as it was.
        learned = news & ((trained.diverged < 0) | (params.buffer.filled == 0))
        if params.parameters:
            latent = np.where(learned[:, None, None, None], latent, params.latent)
        return NetworkParams.of(
            problem,
            buffer,
            parameters_where(learned, trained.parameters, params.parameters),
            network.where(learned, params.network),
            encoding.where(learned, params.reward_encoding),
            latent,
            scaling if scaling is None else scaling.where(learned, params.scaling),
        )

    def at_levels(self, params: NetworkParams, levels: Floats) -> NetworkParams:
        """The same belief, asked for other rewards: ``levels [R, L]``, rising."""
        self._check_levels(params, levels)
        problem, encoding = params.problem, params.reward_encoding._replace(levels=levels)
        network = self._silent(problem, *levels.shape)
        if params.parameters:
            written = self._written(problem, params.parameters, encoding, params.latent)
            network = written.where(params.buffer.filled > 0, network)
        return NetworkParams.of(
            problem,
            params.buffer,
            params.parameters,
            network,
            encoding,
            params.latent,
            params.scaling,
        )

    def _check_levels(self, params: NetworkParams, levels: Floats) -> None:
        replicas, drawn = len(params.latent), params.latent.shape[1]
        rising = levels.ndim == 2 and np.isfinite(levels).all() and np.all(np.diff(levels) >= 0)
        if not rising or len(levels) != replicas or levels.shape[1] == 0:
            raise InputError(
                f"levels must be finite, rise and have the shape [{replicas}, L], not {levels}"
            )
        if drawn not in (1, levels.shape[1]):
            raise InputError(
                f"with draws of their own for each level, {drawn} rewards can be asked for, not "
                f"{levels.shape[1]}"
            )

    def _start(self, params: NetworkParams, encoding: RewardEncoding) -> Parameters | None:
        """The last parameters where training goes on from them, for bin edges that have moved."""
        from submax.nn.training.parameters import moved

        goes_on = self.training.continued
        if self.training.steps == "fitted":
            # A memory that forgets moves rows between those trained on and those held out.
            goes_on = not self.memory.forgets
        if not (goes_on and params.parameters):
            return None
        if np.array_equal(encoding.bin_edges, params.reward_encoding.bin_edges):
            return params.parameters
        bin_edges = params.reward_encoding.embedded(encoding.bin_edges).astype(np.float32)
        return moved(self.design(params.problem), params.parameters, bin_edges)

    def _written(
        self,
        problem: Problem,
        parameters: Parameters,
        encoding: RewardEncoding,
        latent: Floats,
    ) -> SlotNetwork:
        """The trained network as plain arrays, at the levels of the encoding."""
        from submax.nn.training.parameters import restored

        design = self.design(problem)
        levels = encoding.embedded(encoding.levels).astype(np.float32)
        network: SlotNetwork = design.exported(restored(design, parameters), levels, latent)
        return network

    def _silent(self, problem: Problem, replicas: int, levels: int) -> SlotNetwork:
        """A network whose outputs are all 0."""
        space = problem.space
        width = outputs(sum(space.choices), space.reals, self.components)
        return SlotNetwork.silent(
            replicas, levels, self.latent_draws, problem.context_width, self.hidden, width
        )

    def log_prob(self, params: NetworkParams, context: Floats, action: Actions) -> Floats:
        """Logarithm of the mixture over the latent draws."""
        with np.errstate(divide="ignore"):
            return np.log(self.prob(params, context, action))

    def prob(self, params: NetworkParams, context: Floats, action: Actions) -> Floats:
        """(1/Z) Σ_z Π_s p(a_s | c, l, z)."""
        shape = (*context.shape[:2], *action.shape[2:])
        return self.conditioned(params, context).prob(np.broadcast_to(action, shape))

    def prob_of_all(self, params: NetworkParams, context: Floats, space: Space) -> Floats:
        """The same for every joint action."""
        probabilities = choice_probabilities(self._outputs(params, context), space.choices)
        return joint_probabilities(probabilities, space.choices).swapaxes(1, 2)

    def prob_of_choices(self, params: NetworkParams, context: Floats, space: Space) -> list[Floats]:
        """Averaged over the latent draws; the cost does not depend on the joint actions."""
        probabilities = choice_probabilities(self._outputs(params, context), space.choices)
        mean: Floats = probabilities.mean(axis=3).swapaxes(1, 2)
        return np.split(mean, first_choices(space.choices)[1:], axis=-1)

    def sample(
        self,
        params: NetworkParams,
        context: Floats,
        level: int,
        count: int,
        rng: np.random.Generator,
    ) -> Actions:
        """Draw a part of the mixture, then a choice in each slot."""
        one = params._replace(network=params.network.at_level(level), single=None)
        return self.conditioned(one, context).sample(0, count, rng)

    def conditioned(self, params: NetworkParams, context: Floats) -> Conditioned:
        """Evaluate the network once."""
        output, space = self._outputs(params, context), params.problem.space
        if isinstance(space, RealSpace):
            mixture = MixtureDensity.of(output, space.choices, space.reals, self.components)
            return DecodedDensity(mixture, space)
        return DecodedChoices(choice_probabilities(output, space.choices), space.choices)

    def _outputs(self, params: NetworkParams, context: Floats) -> NDArray[np.float32]:
        """``[R, L, n, Z, O]``."""
        given = context
        if params.scaling is not None:
            given = params.scaling.scaled(context).astype(np.float64)
        if params.single is not None and context.shape[1] == 1:
            return params.single.logits(given[0, 0])
        return params.network.logits(given)

    def levels(self, params: NetworkParams) -> Floats:
        """Those the network is written out at."""
        return params.reward_encoding.levels

    def level_prior(self, params: NetworkParams, context: Floats) -> Floats:
        """Share of the observations at each level, whatever the context."""
        if context.shape[1] == 1:
            return params.share
        return np.broadcast_to(params.share, (*context.shape[:2], params.share.shape[2]))

    def evidence(self, params: NetworkParams, context: Floats) -> Floats:
        """The rows kept, of each level its share, since a network tells in one context what it
        learned in others.
        """
        return self.level_prior(params, context) * params.buffer.filled[:, None, None]

    def values(self, params: NetworkParams) -> Floats:
        """The sum over the observations whose reward is not 0, some rows at a time."""
        levels = params.reward_encoding.levels.shape[1]
        numbers = len(params.share) * levels * self.latent_draws * self.hidden
        conditioned = partial(self.prob, params)
        return importance_values(params.buffer, params.problem, conditioned, levels, numbers)


def _encoding(problem: Problem, buffer: Buffer) -> RewardEncoding:
    return problem.scale.reward_encoding(buffer.reward, buffer.weight)
