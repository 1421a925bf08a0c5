"""What the estimators that train a network have in common."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.buffer import Buffer
from submax.core.conditioned import Conditioned
from submax.core.divergence import warn_of_divergence
from submax.core.estimator import Estimator
from submax.core.extras import require_extra
from submax.core.feedback import Feedback
from submax.core.problem import Problem
from submax.core.space import Space
from submax.core.training import Training
from submax.networks.replicas import parameters_where
from submax.networks.single_network import SingleNetwork
from submax.networks.slot_choices import (
    action_probabilities,
    choice_probabilities,
    draw_actions,
    joint_probabilities,
)
from submax.networks.slot_network import SlotNetwork

AT_ONCE = 2**22
"""About so many activations are held at a time when many rows are evaluated."""


class NetworkParams(NamedTuple):
    """Everything observed, the trained parameters by name, and the network as plain arrays.

    ``share [R, 1, L]`` is how often each level was observed; ``single`` is the network laid out
    for one decision at a time, where there is one replica.
    """

    problem: Problem
    buffer: Buffer
    parameters: dict[str, NDArray[np.float32]]
    network: SlotNetwork
    share: Floats
    single: SingleNetwork | None


class NetworkEstimator(Estimator[NetworkParams]):
    """A network trained on all feedback so far, for all replicas at once, by JAX.

    Once trained it is evaluated in numpy. Before the first feedback it is uniform.
    """

    training: Training
    hidden: int

    @property
    @abstractmethod
    def latent_draws(self) -> int:
        """Parts of the mixture (Z)."""

    @abstractmethod
    def design(self, problem: Problem) -> Any:
        """The design to train."""

    @abstractmethod
    def exported(
        self, design: Any, model: Any, replicas: int, rng: np.random.Generator
    ) -> SlotNetwork:
        """The network as plain arrays."""

    @property
    def trains_networks(self) -> bool:
        """It does."""
        return True

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> NetworkParams:
        """A network that is uniform."""
        require_extra("neural", f"the {type(self).__name__} estimator", "jax", "equinox", "optax")
        network = SlotNetwork.silent(
            replicas,
            len(problem.levels),
            self.latent_draws,
            problem.context_width,
            self.hidden,
            sum(problem.space.choices),
        )
        buffer = Buffer.empty(problem, replicas)
        return _params(problem, buffer, {}, network)

    def fit(
        self, params: NetworkParams, feedback: Feedback, rng: np.random.Generator
    ) -> NetworkParams:
        """Train on all feedback so far; without new rows nothing changes."""
        from submax.nn.parameters import restored
        from submax.nn.training import train

        feedback.check(params.problem)
        news = np.any(feedback.weight > 0, axis=1)
        if not news.any():
            return params
        buffer = params.buffer.add(feedback, params.problem)
        design = self.design(params.problem)
        start = params.parameters if self.training.continued and params.parameters else None
        trained = train(design, self.training, buffer, rng, start)
        model = restored(design, trained.parameters)
        network = self.exported(design, model, len(buffer.filled), rng)
        warn_of_divergence(trained.diverged)
        # A replica without news, or whose training diverged, stays as it was.
        learned = news & ((trained.diverged < 0) | (params.buffer.filled == 0))
        return _params(
            params.problem,
            buffer,
            parameters_where(learned, trained.parameters, params.parameters),
            network.where(learned, params.network),
        )

    def log_prob(self, params: NetworkParams, context: Floats, action: Integers) -> Floats:
        """Logarithm of the mixture over the latent draws."""
        with np.errstate(divide="ignore"):
            return np.log(self.prob(params, context, action))

    def prob(self, params: NetworkParams, context: Floats, action: Integers) -> Floats:
        """(1/Z) Σ_z Π_s p(a_s | c, l, z)."""
        shape = (*context.shape[:2], *action.shape[2:])
        return self.conditioned(params, context).prob(np.broadcast_to(action, shape))

    def prob_of_all(self, params: NetworkParams, context: Floats, space: Space) -> Floats:
        """The same for every joint action."""
        decoded = self.conditioned(params, context)
        return joint_probabilities(decoded.probabilities, decoded.sizes).swapaxes(1, 2)

    def sample(
        self,
        params: NetworkParams,
        context: Floats,
        level: int,
        count: int,
        rng: np.random.Generator,
    ) -> Integers:
        """Draw a part of the mixture, then a choice in each slot."""
        one = params._replace(network=params.network.at_level(level), single=None)
        return self.conditioned(one, context).sample(0, count, rng)

    def conditioned(self, params: NetworkParams, context: Floats) -> "Decoded":
        """Evaluate the network once."""
        sizes = params.problem.space.choices
        if params.single is not None and context.shape[1] == 1:
            logits = params.single.logits(context[0, 0])
        else:
            logits = params.network.logits(context)
        return Decoded(choice_probabilities(logits, sizes), sizes)

    def level_prior(self, params: NetworkParams, context: Floats) -> Floats:
        """Share of the observations at each level, whatever the context."""
        if context.shape[1] == 1:
            return params.share
        return np.broadcast_to(params.share, (*context.shape[:2], params.share.shape[2]))

    def values(self, params: NetworkParams) -> Floats:
        """The sum over the observations whose reward is not 0, some rows at a time."""
        buffer = params.buffer
        levels = len(params.problem.levels)
        earned = buffer.weight * buffer.reward
        paid = np.any(earned != 0, axis=0)
        with np.errstate(invalid="ignore"):
            ratio = np.where(earned != 0, earned * np.exp(-buffer.log_prob), 0.0)[:, paid]
        context = buffer.context[:, paid].astype(np.float64)
        action = buffer.action[:, paid, None].astype(np.int64)
        total = np.zeros((len(ratio), levels))
        rows = max(1, AT_ONCE // (len(ratio) * levels * self.latent_draws * self.hidden))
        for begin in range(0, ratio.shape[1], rows):
            part = slice(begin, begin + rows)
            found = self.prob(params, context[:, part], action[:, part])[..., 0]
            total += np.einsum("rn,rnl->rl", ratio[:, part], found)
        weight = buffer.weight.sum(axis=1)
        result: Floats = total / np.where(weight > 0, weight, 1.0)[:, None]
        return result


@dataclass(frozen=True)
class Decoded(Conditioned):
    """The probability of every choice, ``[R, L, n, Z, C]``, with slots of these sizes."""

    probabilities: Floats
    sizes: tuple[int, ...]

    def prob(self, action: Integers) -> Floats:
        """Products of choices, averaged over the latent draws."""
        return action_probabilities(self.probabilities, action, self.sizes)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Integers:
        """Draw a part of the mixture, then a choice in each slot."""
        return draw_actions(self.probabilities[:, level], count, self.sizes, rng)

    def rows(self, row: Integers) -> "Decoded":
        """Nothing is evaluated again."""
        replica = np.arange(len(row))[:, None]
        chosen = self.probabilities[replica, :, row]
        return Decoded(chosen.swapaxes(1, 2), self.sizes)


def _params(
    problem: Problem,
    buffer: Buffer,
    parameters: dict[str, NDArray[np.float32]],
    network: SlotNetwork,
) -> NetworkParams:
    """With what follows from the others."""
    share = buffer.level_share(len(problem.levels))[:, None]
    single = SingleNetwork.of(network) if len(share) == 1 else None
    return NetworkParams(problem, buffer, parameters, network, share, single)
