"""Training whose number of steps is chosen by the loss of held-out rows."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Integers
from submax.core.memory.held_out import MAX_HELD_OUT_ROWS, MIN_ROWS_TO_HOLD_OUT, HeldOut
from submax.core.memory.minibatches import Minibatches
from submax.core.memory.step_limits import most_steps
from submax.core.memory.training import Training
from submax.models.nn.designs.design import Design
from submax.models.nn.training.compiling import compiled, compiled_once, shape
from submax.models.nn.training.device_rows import DeviceRows, RowArray
from submax.models.nn.training.fitted_trainer import (
    BLOCK,
    LONG_PATIENCE,
    PATIENCE,
    FittedTrainer,
    Fitting,
)
from submax.models.nn.training.parameters import packed, unpacked
from submax.models.nn.training.trained import Trained
from submax.models.nn.training.trainer import Trainer, TrainingProgress, drawn_seeds

HELD_OUT_BATCH = 256
"""Number of held-out rows of a replica that are evaluated together: the size of the default
minibatch, so that an evaluation needs no more memory than a training step.
"""


class FittedPrograms(NamedTuple):
    """A trainer of one design, and its compiled methods."""

    trainer: FittedTrainer
    begin: Callable[[TrainingProgress, RowArray, jax.Array], Fitting]
    advance: Callable[[Fitting, RowArray, RowArray], Fitting]


def train_fitted(
    design: Design[Any],
    training: Training,
    minibatches: Minibatches,
    rng: np.random.Generator,
    start: Mapping[str, NDArray[np.float32]] | None,
    rows_before: Integers | None,
) -> Trained:
    """Train each replica until the loss of its held-out rows no longer decreases.

    A replica continues from ``start``, the result of the last training on ``rows_before [R]``
    rows. If its number of rows has passed a power of two since then, it starts from new parameters.
    A replica that started from new parameters returns those of ``start`` if they have the lower
    held-out loss.
    """
    filled = minibatches.filled
    held_out = HeldOut.of(filled)
    rows_held = minibatches.held(held_out, HELD_OUT_BATCH)
    held = jnp.asarray(rows_held)
    fitted, begin, advance = _programs(design, training, len(filled))
    limit = most_steps(filled, training)
    seeds, share = drawn_seeds(len(filled), rng), fitted.shares(rows_held)
    start_steps = jnp.full(len(filled), design.least_steps, dtype=jnp.int32)
    fitting = begin(fitted.trainer.begin(seeds, limit, share), held, start_steps)
    last, anew = None, np.ones(len(filled), dtype=bool)
    if start is not None and rows_before is not None:
        vector, anew = packed(design, start), begins_anew(rows_before, filled)
        # Early stopping is off for the first `least` steps from new parameters.
        least = jnp.asarray(np.where(anew, design.least_steps, 0).astype(np.int32))
        # Compute the held-out loss of the old parameters.
        last = begin(_from(fitting, vector), held, least)
        vector = np.where(anew[:, None], fitting.best, vector)
        fitting = begin(_from(fitting, vector), held, least)
    rows = DeviceRows.of(minibatches)
    for _ in range(-(-int(limit.max()) // BLOCK)):
        fitting = advance(fitting, rows.draw(BLOCK, training.batch, rng, held_out), held)
        # A replica that has stopped has limit 0.
        if not np.any(fitting.progress.limit):
            break
    best, loss, best_step, diverged = jax.device_get(
        (fitting.best, fitting.loss, fitting.best_step, fitting.progress.diverged)
    )
    if last is not None:
        returns = anew & (np.asarray(last.loss) < loss)
        best = np.where(returns[:, None], last.best, best)
        best_step = np.where(returns, 0, best_step)
    return Trained(unpacked(design, best), diverged.astype(np.int64), best_step.astype(np.int64))


def begins_anew(rows_before: Integers, filled: Integers) -> Booleans:
    """Return for each replica whether training starts from new parameters: ``[R]``.

    It does if the number of rows has passed a power of two, or is too small to hold rows out.
    Continuing from the last parameters is cheap, but parameters that fit few rows may be a bad
    start for many rows. Between two new starts the rows double, so all earlier starts together cost
    about as much as the last one. Without held-out rows, continued training would overfit.
    """
    doublings = [np.floor(np.log2(np.maximum(rows, 1))) for rows in (rows_before, filled)]
    anew: Booleans = (doublings[0] != doublings[1]) | (filled < MIN_ROWS_TO_HOLD_OUT)
    return anew


def _from(fresh: Fitting, vector: NDArray[np.float32]) -> TrainingProgress:
    """Return the start of a training from these parameters."""
    return fresh.progress._replace(vector=jnp.asarray(vector), good=jnp.asarray(vector))


@compiled_once
def _programs(design: Design[Any], training: Training, replicas: int) -> FittedPrograms:
    trainer = Trainer(design, training, replicas)
    fitted = FittedTrainer(trainer, LONG_PATIENCE if training.steps == "converged" else PATIENCE)
    least = shape((replicas,), jnp.int32)
    rows = shape((BLOCK, replicas, training.batch, design.columns), jnp.float32)
    held = shape(
        (MAX_HELD_OUT_ROWS // HELD_OUT_BATCH, replicas, HELD_OUT_BATCH, design.columns), jnp.float32
    )
    progress = trainer.progress_shapes
    # The shapes that `begin` returns: to ask JAX for them would trace the whole evaluation.
    loss = shape((replicas,), jnp.float32)
    fitting = Fitting(progress, progress.vector, loss, least, least, least)
    return FittedPrograms(
        fitted,
        compiled(fitted.begin, progress, held, least),
        compiled(fitted.advance, fitting, rows, held),
    )
