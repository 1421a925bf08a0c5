"""Training whose length is chosen by the loss of rows that are held out."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Integers
from submax.core.memory.held_out import FEWEST, MOST, HeldOut
from submax.core.memory.minibatches import Minibatches
from submax.core.memory.training import Training
from submax.nn.designs.design import Design
from submax.nn.training.compiling import compiled, compiled_once, shape
from submax.nn.training.fitted_trainer import BLOCK, FittedTrainer, Fitting
from submax.nn.training.parameters import packed, unpacked
from submax.nn.training.trained import Trained
from submax.nn.training.trainer import Progress, Trainer, drawn_seeds

LOOKED_AT = 256
"""Held-out rows of a replica that are evaluated together, so that a look needs no more memory than
a step of training.
"""
FEW_STEPS = 50
"""Steps for a replica with too few rows to hold any out."""
FEWEST_STEPS = 500
"""Most steps of a refit on few rows."""
EPOCHS = 20
"""Most steps of a refit on more rows, in passes over them."""
MOST_STEPS = 4000
"""Most steps of a refit on however many rows, so that its cost is bounded."""

Rows = NDArray[np.float32] | jax.Array


class FittedPrograms(NamedTuple):
    """What is compiled for one design: new models, a first look, a block of steps and a look."""

    draw: Callable[[jax.Array, jax.Array, Rows], Fitting]
    begin: Callable[[Progress, Rows, jax.Array], Fitting]
    advance: Callable[[Fitting, Rows, Rows], Fitting]


def train_fitted(
    design: Design[Any],
    training: Training,
    minibatches: Minibatches,
    rng: np.random.Generator,
    start: Mapping[str, NDArray[np.float32]] | None,
    before: Integers | None,
) -> Trained:
    """Train each replica until the loss of its held-out rows has stopped falling.

    A replica goes on from ``start``. It begins with new parameters if its rows have passed a power
    of two since there were ``before [R]`` of them; it returns to ``start`` if that is better still.
    """
    filled = minibatches.filled
    held_out = HeldOut.of(filled)
    held = jnp.asarray(minibatches.held(held_out, LOOKED_AT))
    draw, begin, advance = _programs(design, training, len(filled))
    limit = most_steps(filled, training.batch)
    fitting = draw(drawn_seeds(len(filled), rng), jnp.asarray(limit), held)
    last, anew = None, np.ones(len(filled), dtype=bool)
    if start is not None and before is not None:
        vector, anew = packed(design, start), begins_anew(before, filled)
        least = jnp.asarray(np.where(anew, design.least_steps, 0).astype(np.int32))
        last = begin(_from(fitting, vector), held, least)
        vector = np.where(anew[:, None], fitting.best, vector)
        fitting = begin(_from(fitting, vector), held, least)
    for _ in range(-(-int(limit.max()) // BLOCK)):
        rows = minibatches.draw(BLOCK, training.batch, rng, held_out)
        fitting = advance(fitting, rows, held)
        if not np.any(fitting.progress.limit):
            break
    best, loss, at, diverged = jax.device_get(
        (fitting.best, fitting.loss, fitting.at, fitting.progress.diverged)
    )
    if last is not None:
        returns = anew & (np.asarray(last.loss) < loss)
        best, at = np.where(returns[:, None], last.best, best), np.where(returns, 0, at)
    return Trained(unpacked(design, best), diverged.astype(np.int64), at.astype(np.int64))


def most_steps(filled: Integers, batch: int) -> NDArray[np.int32]:
    """After how many steps a refit ends at the latest: ``[R]``."""
    passes = np.clip(EPOCHS * filled // batch, FEWEST_STEPS, MOST_STEPS)
    return np.where(filled < FEWEST, FEW_STEPS, passes).astype(np.int32)


def begins_anew(before: Integers, filled: Integers) -> Booleans:
    """Whether the number of rows has passed a power of two, or is too small to hold any out.

    Going on from the last parameters is cheap, but what was learned from few rows may stand in the
    way of learning from many. Between two such starts the rows double, so that together they cost
    as much as the last one. As long as no row is held out, nothing would stop a replica that goes
    on from learning its few rows by heart.
    """
    doublings = [np.floor(np.log2(np.maximum(rows, 1))) for rows in (before, filled)]
    anew: Booleans = (doublings[0] != doublings[1]) | (filled < FEWEST)
    return anew


def _from(fresh: Fitting, vector: NDArray[np.float32]) -> Progress:
    """Training that begins with these parameters."""
    return fresh.progress._replace(vector=jnp.asarray(vector), good=jnp.asarray(vector))


@compiled_once
def _programs(design: Design[Any], training: Training, replicas: int) -> FittedPrograms:
    trainer = Trainer(design, training, replicas)
    fitted = FittedTrainer(trainer)
    seeds, limit = shape((replicas,), jnp.uint32), shape((replicas,), jnp.int32)
    rows = shape((BLOCK, replicas, training.batch, design.columns), jnp.float32)
    held = shape((MOST // LOOKED_AT, replicas, LOOKED_AT, design.columns), jnp.float32)
    progress = jax.eval_shape(trainer.begin, seeds, limit)
    fitting = jax.eval_shape(fitted.begin, progress, held, limit)
    return FittedPrograms(
        compiled(fitted.draw, seeds, limit, held),
        compiled(fitted.begin, progress, held, limit),
        compiled(fitted.advance, fitting, rows, held),
    )
