"""Training of all replicas at once."""

import functools
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.core.buffer import Buffer
from submax.core.minibatches import Minibatches
from submax.core.training import Training
from submax.nn.design import Design, Example
from submax.nn.parameters import Parameters, packed, unpacked

AT_ONCE = 50
"""Steps for which minibatches are laid out together; the host draws while the device trains."""

NEVER = -1
_compiling = threading.Lock()
_spent = [0.0]


class Trained(NamedTuple):
    """Parameters of all replicas, and the step at which each diverged, ``[R]``, or −1.

    A replica that diverges keeps the parameters of the last step whose loss was finite.
    """

    parameters: Parameters
    diverged: Integers


class Progress(NamedTuple):
    """What training carries from step to step: ``vector [R, P]`` is all parameters of a replica.

    ``good [R, P]`` are the last ones whose loss was found to be finite.
    """

    vector: jax.Array
    good: jax.Array
    optimizer: Any
    key: jax.Array
    step: jax.Array
    diverged: jax.Array


class Programs(NamedTuple):
    """What is compiled for one design: drawing new models, and some steps of training."""

    begin: Callable[[jax.Array], Progress]
    advance: Callable[[Progress, NDArray[np.float32]], Progress]


def train(
    design: Design[Any],
    training: Training,
    buffer: Buffer,
    rng: np.random.Generator,
    start: Mapping[str, NDArray[np.float32]] | None = None,
) -> Trained:
    """Train a model for each replica on its rows of the buffer, from ``start`` or from scratch.

    What is compiled depends on the design, the training and the number of replicas, and not on
    the buffer, so that it is compiled once however the buffer grows.
    """
    replicas = len(buffer.filled)
    begin, advance = programs(design, training, replicas)
    # The one place where a key of JAX is made from a generator of numpy.
    seeds = rng.integers(2**32, size=replicas, dtype=np.uint32)
    progress = begin(jnp.asarray(seeds))
    if start is not None:
        vector = packed(design, start)
        # Two copies, since what training is given it writes over.
        progress = progress._replace(vector=jnp.array(vector), good=jnp.array(vector))
    at_once, minibatches = _at_once(training), Minibatches.of(buffer)
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
    optimizer = optax.adamw(training.learning_rate, weight_decay=training.weight_decay)
    # One long vector: the optimizer is one operation, and not one for each parameter.
    model_of = ravel_pytree(design.drawn(jax.random.key(0)))[1]

    def begin(seeds: jax.Array) -> Progress:
        keys = jax.vmap(lambda seed: jax.random.split(jax.random.key(seed)))(seeds)
        vector = jax.vmap(lambda key: ravel_pytree(design.drawn(key))[0])(keys[:, 0])
        state = jax.vmap(optimizer.init)(vector)
        never = jnp.full(replicas, NEVER)
        step = jnp.zeros((), dtype=jnp.int32)
        return Progress(vector, vector, state, keys[:, 1], step, never)

    def one_step(
        vector: jax.Array, state: Any, key: jax.Array, rows: jax.Array
    ) -> tuple[jax.Array, jax.Array, Any]:
        def mean_loss(vector: jax.Array) -> jax.Array:
            batch, weight = Example.of(rows, design.context_width)
            losses = design.losses(model_of(vector), batch, key)
            return weight @ losses / jnp.maximum(weight.sum(), 1e-9)

        loss, slope = jax.value_and_grad(mean_loss)(vector)
        change, state = optimizer.update(slope, state, vector)
        return loss, vector + change, state

    def step(progress: Progress, rows: jax.Array) -> tuple[Progress, None]:
        keys = jax.vmap(jax.random.fold_in, in_axes=(0, None))(progress.key, progress.step)
        loss, vector, state = jax.vmap(one_step)(progress.vector, progress.optimizer, keys, rows)
        finite = jnp.isfinite(loss) & jnp.isfinite(vector).all(axis=1)
        due = progress.step < training.steps
        first = due & ~finite & (progress.diverged == NEVER)
        diverged = jnp.where(first, progress.step, progress.diverged)
        keep = due & (diverged == NEVER)
        # A loss that is not finite speaks against the parameters it was computed with.
        good = _chosen(jnp.isfinite(loss), progress.vector, progress.good)
        after = Progress(
            _chosen(keep, vector, _chosen(first, good, progress.vector)),
            good,
            _chosen(keep, state, progress.optimizer),
            progress.key,
            progress.step + 1,
            diverged,
        )
        return after, None

    def advance(progress: Progress, rows: jax.Array) -> Progress:
        return jax.lax.scan(step, progress, rows)[0]

    seeds = _shape((replicas,), jnp.uint32)
    columns = design.context_width + len(design.sizes) + 2
    drawn = (_at_once(training), replicas, training.batch, columns)
    rows = _shape(drawn, jnp.float32)
    return Programs(
        _compiled(jax.jit(begin).lower(seeds)),
        _compiled(jax.jit(advance, donate_argnums=0).lower(jax.eval_shape(begin, seeds), rows)),
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


def _chosen(keep: jax.Array, new: Any, old: Any) -> Any:
    """The new values in the replicas that keep them."""

    def choose(one: jax.Array, other: jax.Array) -> jax.Array:
        return jnp.where(keep.reshape(-1, *[1] * (one.ndim - 1)), one, other)

    return jax.tree.map(choose, new, old)
