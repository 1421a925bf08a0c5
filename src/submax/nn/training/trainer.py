"""Steps of training, as pure functions for JAX to compile."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from submax.core.memory.training import Training
from submax.nn.designs.design import Design, Example
from submax.nn.training.parameters import model_shapes

NEVER = -1


class Progress(NamedTuple):
    """What training carries from step to step: ``vector [R, P]`` is all parameters of a replica.

    ``good [R, P]`` are the last ones whose loss was found to be finite; ``limit [R]`` is the number
    of steps after which a replica stays as it is.
    """

    vector: jax.Array
    good: jax.Array
    optimizer: Any
    key: jax.Array
    step: jax.Array
    limit: jax.Array
    diverged: jax.Array


@dataclass(frozen=True)
class Trainer:
    """Train one model of a design for each replica.

    All parameters of a replica are one vector, so that the optimizer is one operation and not one
    for each parameter.
    """

    design: Design[Any]
    training: Training
    replicas: int

    def begin(self, seeds: jax.Array, limit: jax.Array) -> Progress:
        """New models: ``seeds [R]``, ``limit [R]``."""
        keys = jax.vmap(lambda seed: jax.random.split(jax.random.key(seed)))(seeds)
        vector = jax.vmap(lambda key: ravel_pytree(self.design.drawn(key))[0])(keys[:, 0])
        state = jax.vmap(self._optimizer().init)(vector)
        step = jnp.zeros((), dtype=jnp.int32)
        never = jnp.full(self.replicas, NEVER)
        return Progress(vector, vector, state, keys[:, 1], step, limit, never)

    def advance(self, progress: Progress, rows: jax.Array) -> Progress:
        """Some steps, with minibatches ``rows [T, R, B, D + S + E + 1]``."""
        return jax.lax.scan(self._step, progress, rows)[0]

    def _step(self, progress: Progress, rows: jax.Array) -> tuple[Progress, None]:
        """One step of all replicas; those that are done, or have diverged, stay as they are."""
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(progress.key, progress.step)
        trained = jax.vmap(self._trained)(progress.vector, progress.optimizer, keys, rows)
        loss, vector, state = trained
        finite = jnp.isfinite(loss) & jnp.isfinite(vector).all(axis=1)
        due = progress.step < progress.limit
        first = due & ~finite & (progress.diverged == NEVER)
        diverged = jnp.where(first, progress.step, progress.diverged)
        keep = due & (diverged == NEVER)
        # A loss that is not finite speaks against the parameters it was computed with.
        good = where_kept(jnp.isfinite(loss), progress.vector, progress.good)
        after = Progress(
            where_kept(keep, vector, where_kept(first, good, progress.vector)),
            good,
            where_kept(keep, state, progress.optimizer),
            progress.key,
            progress.step + 1,
            progress.limit,
            diverged,
        )
        return after, None

    def _trained(
        self, vector: jax.Array, state: Any, key: jax.Array, rows: jax.Array
    ) -> tuple[jax.Array, jax.Array, Any]:
        """One step of one replica: its loss before, its parameters and its optimizer after."""
        loss, slope = jax.value_and_grad(self._loss)(vector, key, rows)
        change, state = self._optimizer().update(slope, state, vector)
        return loss, vector + change, state

    def _loss(self, vector: jax.Array, key: jax.Array, rows: jax.Array) -> jax.Array:
        """The weighted mean over a minibatch."""
        batch, weight = Example.of(rows, self.design)
        losses = self.design.losses(self.model(vector), batch, key)
        return weight @ losses / jnp.maximum(weight.sum(), 1e-9)

    def model(self, vector: jax.Array) -> Any:
        """The model with these parameters, ``[P]``."""
        leaves, structure = jax.tree.flatten(model_shapes(self.design))
        ends = np.cumsum([leaf.size for leaf in leaves])[:-1]
        parts = jnp.split(vector, ends)
        shaped = [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
        return jax.tree.unflatten(structure, shaped)

    def _optimizer(self) -> optax.GradientTransformation:
        training = self.training
        return optax.adamw(training.learning_rate, weight_decay=training.weight_decay)


def drawn_seeds(replicas: int, rng: np.random.Generator) -> jax.Array:
    """The one place where keys of JAX are made from a generator of numpy: ``[R]``."""
    return jnp.asarray(rng.integers(2**32, size=replicas, dtype=np.uint32))


def where_kept(keep: Any, new: Any, old: Any) -> Any:
    """The new values in the replicas that keep them, ``[R]``."""

    def choose(one: jax.Array, other: jax.Array) -> jax.Array:
        return jnp.where(keep.reshape(-1, *[1] * (one.ndim - 1)), one, other)

    return jax.tree.map(choose, new, old)
