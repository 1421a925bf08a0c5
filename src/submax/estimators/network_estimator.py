"""What the estimators that train a network have in common."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from submax.core.arrays import Actions, Floats
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
from submax.estimators.importance_values import importance_values
from submax.estimators.network_belief import NetworkBelief
from submax.estimators.network_params import NetworkParams
from submax.models.networks.density_head import outputs
from submax.models.networks.replicas import Parameters, parameters_where
from submax.models.networks.slot_network import SlotNetwork

if TYPE_CHECKING:
    from submax.models.nn.training.trained import Trained


class NetworkEstimator(Estimator[NetworkParams]):
    """A network that JAX trains on the stored rows, for all replicas together.

    An input of the network is the reward, encoded by linear interpolation between the two nearest
    bin edges, so that any reward can be conditioned on. The trained network is evaluated with
    numpy. Before the first feedback all probabilities are equal.
    """

    training: Training
    memory: Memory
    hidden: int

    @property
    @abstractmethod
    def latent_draws(self) -> int:
        """The number Z of latent draws, the parts of the mixture."""

    @property
    def components(self) -> int:
        """Mixture components of the density over real-valued parts of an action."""
        return 0

    @property
    def largest_deviation(self) -> float:
        """Deviation up to which a feature is not scaled down, if contexts are standardized."""
        return 0.0

    @abstractmethod
    def design(self, problem: Problem) -> Any:
        """Return the network design to train."""

    @abstractmethod
    def drawn(self, replicas: int, levels: int, rng: np.random.Generator) -> Floats:
        """Return draws of the latent variable, ``[R, L or 1, Z, J]``."""

    def latent_for(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Floats:
        """Return draws of the latent variable for this problem."""
        return self.drawn(replicas, problem.scale.levels, rng)

    @property
    def facts(self) -> Facts:
        return Facts(trains_models=True, forgets=self.memory.forgets)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> NetworkParams:
        who = f"the {type(self).__name__} estimator"
        if problem.space.reals and not self.components:
            raise InputError(
                f"{who} is made for choices, and {problem.space} is real-valued: take the CVAE"
            )
        require_extra("neural", who, "jax", "equinox", "optax")
        nothing = np.zeros((replicas, 0))
        encoding = problem.scale.reward_encoding(nothing, nothing)
        latent = np.zeros((replicas, 1, self.latent_draws, 0))
        network = self.silent_network(problem, replicas, problem.scale.levels)
        return NetworkParams.of(
            problem, Buffer.empty(problem, replicas), {}, network, encoding, latent
        )

    def fit(
        self, params: NetworkParams, feedback: Feedback, rng: np.random.Generator
    ) -> NetworkParams:
        problem = params.problem
        feedback.check(problem)
        news = np.any(feedback.weight > 0, axis=1)
        if not news.any():
            return params
        if params.reward_encoding.levels.shape[1] != problem.scale.levels:
            params = self.at_levels(params, _encoding(problem, params.buffer).levels)
        buffer = params.buffer.add(feedback, self.memory, rng)
        encoding = _encoding(problem, buffer)
        scaling = self.scaling(params, buffer)
        trained = self.trained(params, buffer, feedback, encoding, scaling, rng)
        latent = self.latent_for(problem, len(news), rng)
        network = self._written(problem, trained.parameters, encoding, latent)
        warn_of_divergence(trained.diverged)
        # A replica without new rows, or whose training diverged, keeps its network.
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

    def scaling(self, params: NetworkParams, buffer: Buffer) -> ContextScaling | None:
        """Return how contexts are standardized from now on; None if they are not."""
        if not self.training.standardizes:
            return None
        return ContextScaling.of(buffer, self.largest_deviation)

    def trained(
        self,
        params: NetworkParams,
        buffer: Buffer,
        feedback: Feedback,
        encoding: RewardEncoding,
        scaling: ContextScaling | None,
        rng: np.random.Generator,
    ) -> "Trained":
        """Train on all rows of the ``buffer``, the new ones of ``feedback`` among them."""
        from submax.models.nn.training.training import train

        space = params.problem.space
        action, reward = space.scaled(buffer.action), encoding.encoded(buffer.reward)
        rows = Minibatches.of(buffer, action, reward, scaling)
        start, rows_before = self._start(params, encoding), params.buffer.filled
        design = self.design(params.problem)
        return train(design, self.training, rows, rng, start, rows_before)

    def at_levels(self, params: NetworkParams, levels: Floats) -> NetworkParams:
        """Return the parameters conditioned on other rewards: ``levels [R, L]``, rising."""
        self._check_levels(params, levels)
        problem, encoding = params.problem, params.reward_encoding._replace(levels=levels)
        network = self.silent_network(problem, *levels.shape)
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
                f"levels must be finite, rise and have the shape [{replicas}, L], not {levels}",
                parameter="levels",
            )
        if drawn not in (1, levels.shape[1]):
            raise InputError(
                f"with draws of their own for each level, {drawn} rewards can be asked for, not "
                f"{levels.shape[1]}"
            )

    def _start(self, params: NetworkParams, encoding: RewardEncoding) -> Parameters | None:
        """Return the parameters to continue training from, for bin edges that may have moved."""
        from submax.models.nn.training.parameters import moved

        goes_on = self.training.continued
        if self.training.stops_early:
            # A memory that forgets moves rows between the training set and the held-out set.
            goes_on = not self.memory.forgets
        if not (goes_on and params.parameters):
            return None
        if np.array_equal(encoding.bin_edges, params.reward_encoding.bin_edges):
            return params.parameters
        encoded_edges = params.reward_encoding.encoded(encoding.bin_edges).astype(np.float32)
        return moved(self.design(params.problem), params.parameters, encoded_edges)

    def _written(
        self,
        problem: Problem,
        parameters: Parameters,
        encoding: RewardEncoding,
        latent: Floats,
    ) -> Any:
        """Return the trained network as plain arrays, evaluated at the levels."""
        from submax.models.nn.training.parameters import restored

        design = self.design(problem)
        levels = encoding.encoded(encoding.levels).astype(np.float32)
        return design.exported(restored(design, parameters), levels, latent)

    def silent_network(self, problem: Problem, replicas: int, levels: int) -> Any:
        """Return a network whose outputs are all 0, so that all probabilities are equal."""
        space = problem.space
        width = outputs(sum(space.choices), space.reals, self.components)
        return SlotNetwork.silent(
            replicas, levels, self.latent_draws, problem.context_width, self.hidden, width
        )

    def belief(self, params: NetworkParams, context: Floats) -> NetworkBelief:
        return NetworkBelief(
            params, context, self.components, lambda: self.importance_values(params)
        )

    def importance_values(self, params: NetworkParams) -> Floats:
        """Return V_l, summed over the rows whose reward is not 0, some rows at a time."""
        levels = params.reward_encoding.levels.shape[1]
        numbers = len(params.level_share) * levels * self.latent_draws * self.hidden

        def prob(context: Floats, action: Actions) -> Floats:
            return self.belief(params, context).prob(action)

        return importance_values(params.buffer, params.problem, prob, levels, numbers)


def _encoding(problem: Problem, buffer: Buffer) -> RewardEncoding:
    return problem.scale.reward_encoding(buffer.reward, buffer.weight)
