"""Training of the networks of all replicas at once."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.core.memory.minibatches import Minibatches
from submax.core.memory.training import Training
from submax.models.nn.designs.design import Design
from submax.models.nn.training.compiling import (
    compilations,
    compiled,
    compiled_once,
    compiling_seconds,
    shape,
)
from submax.models.nn.training.device_rows import DeviceRows, RowArray
from submax.models.nn.training.fitted_training import train_fitted
from submax.models.nn.training.parameters import packed, unpacked
from submax.models.nn.training.trained import Trained
from submax.models.nn.training.trainer import Trainer, TrainingProgress, drawn_seeds

__all__ = ["Trained", "compilations", "compiling_seconds", "train", "unpacked"]

STEPS_PER_CALL = 50
"""Largest number of steps per call of the compiled program: the host draws the minibatches of the
next call while the device trains."""


class Programs(NamedTuple):
    """A trainer of one design, and its compiled method."""

    trainer: Trainer
    advance: Callable[[TrainingProgress, RowArray], TrainingProgress]


def train(
    design: Design[Any],
    training: Training,
    minibatches: Minibatches,
    rng: np.random.Generator,
    start: Mapping[str, NDArray[np.float32]] | None = None,
    rows_before: Integers | None = None,
) -> Trained:
    """Train a model for each replica on its rows, from ``start`` or from scratch.

    The compiled program depends on the design, the training and the number of replicas, but not on
    the number of rows, so that it is compiled only once. ``rows_before [R]`` is the number of rows
    on which ``start`` was trained. If held-out rows decide the steps, it decides whether a replica
    continues from ``start``.
    """
    if isinstance(training.steps, str):
        return train_fitted(design, training, minibatches, rng, start, rows_before)
    replicas = len(minibatches.filled)
    steps_per_call = _steps_per_call(training.steps)
    trainer, advance = _programs(design, training, replicas, steps_per_call)
    limit = np.full(replicas, training.steps, np.int32)
    share = minibatches.reward_share(design.reward_width)
    progress = trainer.begin(drawn_seeds(replicas, rng), limit, share)
    if start is not None:
        vector = packed(design, start)
        # Two copies, because the compiled program overwrites its arguments.
        progress = progress._replace(vector=jnp.array(vector), good=jnp.array(vector))
    rows = DeviceRows.of(minibatches)
    for _ in range(-(-training.steps // steps_per_call)):
        progress = advance(progress, rows.draw(steps_per_call, training.batch, rng))
    vector, diverged = jax.device_get((progress.vector, progress.diverged))
    return Trained(unpacked(design, vector), diverged.astype(np.int64))


@compiled_once
def _programs(
    design: Design[Any], training: Training, replicas: int, steps_per_call: int
) -> Programs:
    trainer = Trainer(design, training, replicas)
    rows = shape((steps_per_call, replicas, training.batch, design.columns), jnp.float32)
    return Programs(
        trainer, compiled(trainer.advance, trainer.progress_shapes, rows, overwrites=(0,))
    )


def _steps_per_call(steps: int) -> int:
    """Divide the steps into equal calls, as large as allowed; surplus steps have no effect."""
    parts = -(-steps // STEPS_PER_CALL)
    return -(-steps // parts)
