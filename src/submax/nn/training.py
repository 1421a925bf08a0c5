"""Training of all replicas at once."""

import functools
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.core.minibatches import Minibatches
from submax.core.training import Training
from submax.networks.replicas import Parameters
from submax.nn.design import Design
from submax.nn.parameters import packed, unpacked
from submax.nn.trainer import Progress, Trainer

AT_ONCE = 50
"""Steps for which minibatches are laid out together; the host draws while the device trains."""

_compiling = threading.Lock()
_spent = [0.0]


class Trained(NamedTuple):
    """Parameters of all replicas, and the step at which each diverged, ``[R]``, or −1.

    A replica that diverges keeps the parameters of the last step whose loss was finite.
    """

    parameters: Parameters
    diverged: Integers


class Programs(NamedTuple):
    """What is compiled for one design: drawing new models, and some steps of training."""

    begin: Callable[[jax.Array], Progress]
    advance: Callable[[Progress, NDArray[np.float32]], Progress]


def train(
    design: Design[Any],
    training: Training,
    minibatches: Minibatches,
    rng: np.random.Generator,
    start: Mapping[str, NDArray[np.float32]] | None = None,
) -> Trained:
    """Train a model for each replica on its rows, from ``start`` or from scratch.

    What is compiled depends on the design, the training and the number of replicas, and not on
    how many rows there are, so that it is compiled once however they grow.
    """
    replicas = len(minibatches.filled)
    begin, advance = programs(design, training, replicas)
    # The one place where a key of JAX is made from a generator of numpy.
    seeds = rng.integers(2**32, size=replicas, dtype=np.uint32)
    progress = begin(jnp.asarray(seeds))
    if start is not None:
        vector = packed(design, start)
        # Two copies, since what training is given it writes over.
        progress = progress._replace(vector=jnp.array(vector), good=jnp.array(vector))
    at_once = _at_once(training)
    for _ in range(-(-training.steps // at_once)):
        progress = advance(progress, minibatches.draw(at_once, training.batch, rng))
    vector, diverged = jax.device_get((progress.vector, progress.diverged))
    return Trained(unpacked(design, vector), diverged.astype(np.int64))


def programs(design: Design[Any], training: Training, replicas: int) -> Programs:
    """The programs for a design; compiled once in a process, also when threads ask together."""
    with _compiling:
        begin = time.perf_counter()
        made = _programs(design, training, replicas)
        _spent[0] += time.perf_counter() - begin
        return made


def compiling_seconds() -> float:
    """How long this process has spent on compiling for training."""
    return _spent[0]


def compilations() -> int:
    """How often something was compiled for training in this process."""
    return _programs.cache_info().misses


@functools.cache
def _programs(design: Design[Any], training: Training, replicas: int) -> Programs:
    trainer = Trainer(design, training, replicas)
    seeds = _shape((replicas,), jnp.uint32)
    rows = _shape((_at_once(training), replicas, training.batch, design.columns), jnp.float32)
    start = jax.eval_shape(trainer.begin, seeds)
    return Programs(
        _compiled(jax.jit(trainer.begin).lower(seeds)),
        _compiled(jax.jit(trainer.advance, donate_argnums=0).lower(start, rows)),
    )


def _shape(shape: tuple[int, ...], kind: Any) -> Any:
    return jax.ShapeDtypeStruct(shape, kind)  # type: ignore[no-untyped-call]  # untyped in JAX


def _compiled(lowered: Any) -> Any:
    """On a CPU half the compile time goes into optimizations that these programs do not need."""
    if jax.default_backend() == "cpu":
        return lowered.compile(compiler_options={"xla_backend_optimization_level": 1})
    return lowered.compile()


def _at_once(training: Training) -> int:
    """Equal parts of the steps, as large as allowed; the last may go beyond the end, unused."""
    parts = -(-training.steps // AT_ONCE)
    return -(-training.steps // parts)
