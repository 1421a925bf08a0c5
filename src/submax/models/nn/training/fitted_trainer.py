"""Training with early stopping by the loss of held-out rows, as pure functions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from submax.models.nn.designs.design import Example
from submax.models.nn.training.trainer import Trainer, TrainingProgress, where_kept

BLOCK = 25
"""Number of steps between two evaluations of the held-out loss."""
PATIENCE = 4
"""A replica stops after this many consecutive evaluations without a lower held-out loss."""
LONG_PATIENCE = 40
"""The same with steps="converged", 1000 steps: a network can stay on a plateau for hundreds."""
HELD_OUT_SEED = 0
"""Seed of the noise in the held-out loss, always the same so that losses are comparable."""


class Fitting(NamedTuple):
    """The progress of training, and the ``best [R, P]`` parameters by held-out ``loss [R]``.

    The best parameters were reached at step ``best_step [R]``, and ``stale [R]`` counts the
    evaluations since. Up to step ``least [R]``, and if no rows are held out, the latest parameters
    count as the best.
    """

    progress: TrainingProgress
    best: jax.Array
    loss: jax.Array
    best_step: jax.Array
    stale: jax.Array
    least: jax.Array


@dataclass(frozen=True)
class FittedTrainer:
    """Trains in blocks of steps; a replica stops when its held-out loss no longer decreases."""

    trainer: Trainer
    patience: int = PATIENCE

    def begin(self, progress: TrainingProgress, held: jax.Array, least: jax.Array) -> Fitting:
        """Return the start of a training from given parameters; ``held`` is ``[T, R, B, ...]``."""
        vector = progress.vector
        zeros = jnp.zeros(len(vector), dtype=jnp.int32)
        return Fitting(progress, vector, self.losses(vector, held), zeros, zeros, least)

    def advance(self, fitting: Fitting, rows: jax.Array, held: jax.Array) -> Fitting:
        """Train a block of steps on minibatches ``rows [T, R, B, ...]``, and evaluate."""
        progress = self.trainer.advance(fitting.progress, rows)
        loss = self.losses(progress.vector, held)
        nothing_held = ~jnp.any(held[..., -1] > 0, axis=(0, 2))
        going_on = fitting.progress.limit > 0
        no_stopping = nothing_held | (progress.step <= fitting.least)
        better = going_on & ((loss < fitting.loss) | no_stopping)
        stale = jnp.where(better, 0, fitting.stale + 1)
        stopped = (stale >= self.patience) | (progress.step >= progress.limit)
        return Fitting(
            progress._replace(limit=jnp.where(stopped, 0, progress.limit)),
            where_kept(better, progress.vector, fitting.best),
            jnp.where(better, loss, fitting.loss),
            jnp.where(better, jnp.minimum(progress.step, progress.limit), fitting.best_step),
            stale,
            fitting.least,
        )

    def losses(self, vector: jax.Array, held: jax.Array) -> jax.Array:
        """Return the weighted mean loss over the held-out rows, ``[R]``.

        If a design has several losses, the lowest mean is used. A mean that is not finite becomes
        infinity, so that any other loss is lower.
        """
        keys = jax.random.split(jax.random.key(HELD_OUT_SEED), len(held))
        shares = self.shares(held)
        nothing = jax.eval_shape(self._all_sums, vector, held[0], shares, keys[0])

        def add(total: jax.Array, part: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
            rows, key = part
            # Few rows fill few batches: an empty one would take as long as a full one.
            sums = jax.lax.cond(
                jnp.any(rows[..., -1] != 0),
                lambda: self._all_sums(vector, rows, shares, key),
                lambda: jnp.zeros(nothing.shape),
            )
            return total + sums, None

        total = jax.lax.scan(add, jnp.zeros(nothing.shape), (held, keys))[0]
        mean = (total[:, 1:] / total[:, :1]).min(axis=1)
        return jnp.where(jnp.isfinite(mean), mean, jnp.inf)

    def shares(self, held: Any) -> Any:
        """Return how often each reward occurs among the held-out rows: ``[R, E]``.

        The rows, and so the result, are arrays of numpy or of JAX.

        One additional row with equal shares of all rewards keeps the result away from 0 and 1.
        """
        batch, weight = Example.of(held, self.trainer.design)
        total = (batch.reward * weight[..., None]).sum(axis=(0, 2))
        equal_share = 1 / max(self.trainer.design.reward_width, 2)
        return (total + equal_share) / (weight.sum(axis=(0, 2)) + 1)[:, None]

    @cached_property
    def _all_sums(self) -> Callable[..., jax.Array]:
        """`_sums` of all replicas, which JAX traces once for all programs that evaluate."""
        return jax.jit(jax.vmap(self._sums, in_axes=(0, 0, 0, None)))

    def _sums(
        self, vector: jax.Array, rows: jax.Array, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return the sum of one replica's weights, and its weighted sums of losses: ``[1 + T]``."""
        design = self.trainer.design
        batch, weight = Example.of(rows, design)
        losses = design.held_out_losses(self.trainer.model(vector), batch, share, key)
        # An absent row, of weight 0, may have a loss that is not finite.
        sums = jnp.where(weight[:, None] > 0, weight[:, None] * losses, 0.0).sum(axis=0)
        return jnp.concatenate([weight.sum(keepdims=True), sums])
