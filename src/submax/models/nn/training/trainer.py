"""Training steps, as pure functions that JAX can compile."""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from submax.core.memory.training import Training
from submax.models.nn.designs.design import Design, Example
from submax.models.nn.training.compiling import shape
from submax.models.nn.training.parameters import model_shapes

Seeds = NDArray[np.uint32]
Limits = NDArray[np.int32]

NEVER = -1
"""The step of divergence of a replica that has not diverged."""


class TrainingProgress(NamedTuple):
    """The state of training between two steps.

    ``vector [R, P]`` are all parameters of each replica, and ``good [R, P]`` the latest parameters
    with a finite loss. ``optimizer`` is the state of the optimizer, and ``seed [R]`` are the seeds
    from which the noise of each step follows. ``step`` is the number of steps so far. A replica
    stops after ``limit [R]`` steps. ``diverged [R]`` is the step at which its loss or its
    parameters were first not finite, or −1. A replica that diverged returns to its good parameters
    and stops.
    """

    vector: jax.Array
    good: jax.Array
    optimizer: Any
    seed: jax.Array
    step: jax.Array
    limit: jax.Array
    diverged: jax.Array


@dataclass(frozen=True)
class Trainer:
    """Trains one model of a design for each replica, by AdamW.

    All parameters of a replica form one vector, so that an optimizer step is one operation instead
    of one per parameter.
    """

    design: Design[Any]
    training: Training
    replicas: int

    def begin(self, seeds: Seeds, limit: Limits, share: NDArray[np.float32]) -> TrainingProgress:
        """Return the start of training with new models, whose parameters are random.

        ``seeds [R]`` are the seeds of the random numbers, and ``limit [R]`` is the largest number
        of steps. ``share [R, E]`` is the mean of the encoded rewards: how often each reward occurs.
        A design may choose initial parameters whose outputs fit it (`Design.informed`).
        """
        pairs = zip(seeds, share, strict=True)
        vector = np.stack([self._drawn(np.random.default_rng(seed), one) for seed, one in pairs])
        # Every array is copied, because a compiled program may overwrite its arguments.
        return TrainingProgress(
            jnp.array(vector),
            jnp.array(vector),
            jax.tree.map(jnp.array, _optimizer_start(self.training, *vector.shape)),
            jnp.array(seeds),
            jnp.array(np.zeros((), np.int32)),
            jnp.array(limit),
            jnp.array(np.full(self.replicas, NEVER, np.int32)),
        )

    @property
    def progress_shapes(self) -> Any:
        """The shapes of ``TrainingProgress``, for which programs are compiled."""
        seeds, limit = np.zeros(self.replicas, np.uint32), np.zeros(self.replicas, np.int32)
        share = np.full((self.replicas, self.design.reward_width), 0.5, np.float32)
        progress = self.begin(seeds, limit, share)
        return jax.tree.map(lambda array: shape(array.shape, array.dtype), progress)

    def _drawn(self, rng: np.random.Generator, share: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the initial parameters of one replica: ``[P]``."""
        model = self.design.informed(self.design.drawn(rng), share)
        return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model)])

    def advance(self, progress: TrainingProgress, rows: jax.Array) -> TrainingProgress:
        """Train T steps, each on a minibatch of B rows: ``rows [T, R, B, D + S + E + 1]``.

        The columns are context, action, encoded reward and weight, as in `Example.of`.
        """
        return jax.lax.scan(self._step, progress, rows)[0]

    def _step(self, progress: TrainingProgress, rows: jax.Array) -> tuple[TrainingProgress, None]:
        """Train all replicas one step.

        A replica that has stopped or diverged does not change; one that diverges in this step
        returns to its latest parameters with a finite loss.
        """
        keys = jax.vmap(self._key, in_axes=(0, None))(progress.seed, progress.step)
        trained = jax.vmap(self._trained)(progress.vector, progress.optimizer, keys, rows)
        loss, vector, state = trained
        finite = jnp.isfinite(loss) & jnp.isfinite(vector).all(axis=1)
        due = progress.step < progress.limit
        first = due & ~finite & (progress.diverged == NEVER)
        diverged = jnp.where(first, progress.step, progress.diverged)
        keep = due & (diverged == NEVER)
        # The loss is that of the parameters before the step. If it is finite, these are good.
        good = where_kept(jnp.isfinite(loss), progress.vector, progress.good)
        after = TrainingProgress(
            where_kept(keep, vector, where_kept(first, good, progress.vector)),
            good,
            where_kept(keep, state, progress.optimizer),
            progress.seed,
            progress.step + 1,
            progress.limit,
            diverged,
        )
        return after, None

    def _key(self, seed: jax.Array, step: jax.Array) -> jax.Array:
        """Return the key of the noise of one step of one replica."""
        return jax.random.fold_in(jax.random.key(seed), step)

    def _trained(
        self, vector: jax.Array, state: Any, key: jax.Array, rows: jax.Array
    ) -> tuple[jax.Array, jax.Array, Any]:
        """Train one replica one step.

        Return its loss before the step, and its parameters and optimizer state after the step.
        """
        loss, gradient = jax.value_and_grad(self._loss)(vector, key, rows)
        change, state = _optimizer(self.training).update(gradient, state, vector)
        return loss, vector + change, state

    def _loss(self, vector: jax.Array, key: jax.Array, rows: jax.Array) -> jax.Array:
        """Return the weighted mean loss of a minibatch."""
        batch, weight = Example.of(rows, self.design)
        losses = self.design.losses(self.model(vector), batch, key)
        return weight @ losses / jnp.maximum(weight.sum(), 1e-9)

    def model(self, vector: jax.Array) -> Any:
        """Return the model of one replica with the parameters ``vector [P]``."""
        leaves, structure = jax.tree.flatten(model_shapes(self.design))
        ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
        parts = jnp.split(vector, ends)
        shaped = [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
        return jax.tree.unflatten(structure, shaped)


def _optimizer(training: Training) -> optax.GradientTransformation:
    return optax.adamw(training.learning_rate, weight_decay=training.weight_decay)


@functools.cache
def _optimizer_start(training: Training, replicas: int, parameters: int) -> Any:
    """Return the optimizer's state before the first step: its moments and its count are zero.

    Only the shapes are asked of the optimizer, because to compile the small programs that make the
    zeros takes a sixth of the time that a training program takes.

    Reference: Kingma and Ba (2015), algorithm 1.
    """
    vector = shape((replicas, parameters), jnp.float32)
    state = jax.eval_shape(jax.vmap(_optimizer(training).init), vector)
    return jax.tree.map(lambda part: np.zeros(part.shape, part.dtype), state)


def drawn_seeds(replicas: int, rng: np.random.Generator) -> Seeds:
    """Draw a seed for the random numbers of each replica, ``[R]``.

    The initial parameters and the noise of training follow from these seeds, and so from ``rng``.
    """
    return rng.integers(2**32, size=replicas, dtype=np.uint32)


def where_kept(keep: Any, new: Any, old: Any) -> Any:
    """Return ``new`` in the replicas where ``keep [R]`` is true, and ``old`` in the others."""

    def choose(one: jax.Array, other: jax.Array) -> jax.Array:
        return jnp.where(keep.reshape(-1, *[1] * (one.ndim - 1)), one, other)

    return jax.tree.map(choose, new, old)
