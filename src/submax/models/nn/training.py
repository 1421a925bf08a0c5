"""Training of the networks of all replicas at once."""

import functools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError, warn_of_divergence
from submax.core.numerics import where_chosen
from submax.models.memory import Buffer
from submax.models.networks.choices import Parameters
from submax.models.nn.designs import Design, Example
from submax.models.nn.reward_injection import Injection
from submax.models.training_settings import (
    MIN_ROWS_TO_HOLD_OUT,
    ContextScaling,
    HeldOut,
    Minibatches,
    Training,
    most_steps,
)

CPU_LEVEL = 1
"""How much XLA optimizes a program for the CPU, from 0 to 3. Above 1, half of the compile time goes
into optimizations that do not make these programs faster; at 0, long trainings take half as long
again."""

_compiling = threading.Lock()
_spent = [0.0]


def compiled(program: Callable[..., Any]) -> Callable[..., Any]:
    """Return the program, which its first call compiles for arguments of the shapes there."""
    made: list[Any] = []

    def run(*arguments: Any) -> Any:
        if not made:
            with _compiling:
                begin, on_cpu = time.perf_counter(), jax.default_backend() == "cpu"
                options: Any = {"xla_backend_optimization_level": CPU_LEVEL} if on_cpu else None
                lowered: Any = jax.jit(program).lower(*arguments)
                made.append(lowered.compile(compiler_options=options))
                _spent[0] += time.perf_counter() - begin
        return made[0](*arguments)

    return run


def compiling_seconds() -> float:
    """Return the seconds that this process has spent on compilation."""
    return _spent[0]


def check_gpu() -> None:
    """Raise an ``InputError`` if JAX has no GPU."""
    if jax.default_backend() == "cpu":
        seen = ", ".join(str(device) for device in jax.devices())
        raise InputError(f"JAX finds no GPU, only {seen}: leave --device out, or use --device cpu")


def row_source(minibatches: Minibatches, on_device: bool | None = None) -> Callable[..., Any]:
    """Return `Minibatches.draw`; an accelerator receives the table once, then only row indices."""
    if not (jax.default_backend() != "cpu" if on_device is None else on_device):
        return minibatches.draw
    table = jnp.asarray(minibatches.table)
    return lambda *drawn: _gathered(table, minibatches.places(*drawn).astype(np.int32))


@jax.jit
def _gathered(table: jax.Array, places: jax.Array) -> jax.Array:
    # All places are inside the table; "clip" leaves out the check for those that are not.
    return jnp.take(table, places, axis=0, mode="clip")


def restored(design: Design[Any], vector: Any) -> Any:
    """Return the model with the parameters ``vector [..., P]``, in the order of its leaves."""
    leaves, structure = jax.tree.flatten(model_shapes(design))
    split: Any = jnp.split if isinstance(vector, jax.Array) else np.split
    parts = split(vector, np.cumsum([leaf.size for leaf in leaves])[:-1], axis=-1)
    shaped = [
        part.reshape(*vector.shape[:-1], *leaf.shape)
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    return jax.tree.unflatten(structure, shaped)


def moved(design: Design[Any], vector: Parameters, encoded_edges: Parameters) -> Parameters:
    """Return the parameters of the same function for rewards encoded by other bin edges.

    ``encoded_edges [R, E, E]`` are the new bin edges, encoded by the old ones.
    """
    model = jax.tree.map(
        lambda part: part.moved(encoded_edges) if isinstance(part, Injection) else part,
        restored(design, vector),
        is_leaf=lambda part: isinstance(part, Injection),
    )
    leaves = [np.reshape(leaf, (len(vector), -1)) for leaf in jax.tree.leaves(model)]
    return np.concatenate(leaves, axis=1, dtype=np.float32)


@functools.cache
def model_shapes(design: Design[Any]) -> Any:
    """Return a model of shapes. Cached: tracing them takes longer than a short training."""
    return jax.eval_shape(lambda: design.drawn(np.random.default_rng(0)))


class Trained(NamedTuple):
    """The trained ``parameters [R, P]``, in the order of the leaves of the model.

    ``diverged [R]`` is the step at which the loss or the parameters of a replica became infinite or
    NaN, or −1; its parameters are then the latest ones with a finite loss, or the best ones by
    held-out loss. ``steps [R]`` led to the parameters; None if their number was set in advance.
    """

    parameters: Parameters
    diverged: Integers
    steps: Integers | None = None


NEVER = -1
"""The step of divergence of a replica that has not diverged."""
BLOCK = 25
"""Number of steps between two evaluations of the held-out loss."""
PATIENCE = 4
"""A replica stops after this many consecutive evaluations without a lower held-out loss."""
LONG_PATIENCE = 40
"""The same with steps="converged", 1000 steps: a network can stay on a plateau for hundreds."""
HELD_OUT_SEED = 0
"""Seed of the noise in the held-out loss, always the same so that losses are comparable."""
HELD_OUT_BATCH = 256
"""Number of held-out rows of a replica that are evaluated together: the size of the default
minibatch, so an evaluation needs no more memory than a training step."""
STEPS_PER_CALL = 50
"""Largest number of steps per call with a fixed number of steps: the host draws the minibatches of
the next call while the device trains."""


class Progress(NamedTuple):
    """The state of training between two steps.

    ``vector [R, P]`` are the parameters, ``good [R, P]`` the latest ones with a finite loss, to
    which a replica that ``diverged`` returns. The noise of each step follows from ``seed [R]``. A
    replica stops after ``limit [R]`` steps. The ``best [R, P]`` parameters by held-out
    ``loss [R]`` were reached at step ``best_step [R]``, and ``stale [R]`` counts the evaluations
    since. Up to step ``least [R]``, and if no rows are held out, the latest ones are the best.
    """

    vector: jax.Array
    good: jax.Array
    optimizer: Any
    seed: jax.Array
    step: jax.Array
    limit: jax.Array
    diverged: jax.Array
    best: jax.Array
    loss: jax.Array
    best_step: jax.Array
    stale: jax.Array
    least: jax.Array


@dataclass(frozen=True)
class Trainer:
    """Trains one model of a design for each replica, by AdamW in blocks of steps.

    All parameters of a replica form one vector, so an optimizer step is one operation.
    """

    design: Design[Any]
    training: Training
    replicas: int

    def fresh(
        self, seeds: NDArray[np.uint32], limit: NDArray[np.int32], share: NDArray[np.float32]
    ) -> Progress:
        """Return the start of training with new models, drawn from ``seeds [R]``.

        ``limit [R]`` is the largest number of steps, and ``share [R, E]`` how often each reward
        occurs; see `Design.informed`.
        """
        vectors = []
        for seed, one in zip(seeds, share, strict=True):
            model = self.design.informed(self.design.drawn(np.random.default_rng(seed)), one)
            vectors.append(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model)]))
        vector, zeros = np.stack(vectors), np.zeros(self.replicas, np.int32)
        start = {
            "vector": vector,
            "good": vector,
            "optimizer": _optimizer_start(self.training, *vector.shape),
            "seed": seeds,
            "step": np.zeros((), np.int32),
            "limit": limit,
            "diverged": zeros + NEVER,
            "best": vector,
            "loss": np.zeros(self.replicas, np.float32),
            "best_step": zeros,
            "stale": zeros,
            "least": zeros + self.design.least_steps,
        }
        return Progress(**jax.tree.map(jnp.asarray, start))

    @cached_property
    def programs(self) -> tuple[Callable[..., Progress], Callable[..., Progress]]:
        """`begin` and `advance`, compiled."""
        return compiled(self.begin), compiled(self.advance)

    def begin(self, progress: Progress, held: jax.Array) -> Progress:
        """Evaluate the parameters at the start; ``held`` is ``[T, R, B, ...]``."""
        return progress._replace(best=progress.vector, loss=self.losses(progress.vector, held))

    def advance(self, before: Progress, rows: jax.Array, held: jax.Array) -> Progress:
        """Train a block of steps, each on a minibatch of B rows, and evaluate.

        ``rows [T, R, B, D + S + E + 1]`` have the columns context, action, encoded reward and
        weight, as in `Example.of`.
        """
        after = jax.lax.scan(self._step, before, rows)[0]
        loss = self.losses(after.vector, held)
        nothing_held = ~jnp.any(held[..., -1] > 0, axis=(0, 2))
        no_stopping = nothing_held | (after.step <= before.least)
        better = (before.limit > 0) & ((loss < before.loss) | no_stopping)
        stale = jnp.where(better, 0, before.stale + 1)
        patience = LONG_PATIENCE if self.training.steps == "converged" else PATIENCE
        stopped = (stale >= patience) | (after.step >= after.limit)
        return after._replace(
            limit=jnp.where(stopped, 0, after.limit),
            best=where_kept(better, after.vector, before.best),
            loss=jnp.where(better, loss, before.loss),
            best_step=jnp.where(better, jnp.minimum(after.step, after.limit), before.best_step),
            stale=stale,
        )

    @property
    def block(self) -> int:
        """The number of steps in a call; surplus steps of the last one have no effect."""
        if self.training.stops_early:
            return BLOCK
        steps = int(self.training.steps)
        # Equal calls, as large as allowed.
        return -(-steps // -(-steps // STEPS_PER_CALL))

    def _step(self, progress: Progress, rows: jax.Array) -> tuple[Progress, None]:
        keys = jax.vmap(lambda seed: jax.random.fold_in(jax.random.key(seed), progress.step))(
            progress.seed
        )
        trained = jax.vmap(self._trained)(progress.vector, progress.optimizer, keys, rows)
        loss, vector, state = trained
        finite = jnp.isfinite(loss) & jnp.isfinite(vector).all(axis=1)
        due = progress.step < progress.limit
        first = due & ~finite & (progress.diverged == NEVER)
        diverged = jnp.where(first, progress.step, progress.diverged)
        keep = due & (diverged == NEVER)
        # The loss is that of the parameters before the step. If it is finite, these are good.
        good = where_kept(jnp.isfinite(loss), progress.vector, progress.good)
        after = progress._replace(
            vector=where_kept(keep, vector, where_kept(first, good, progress.vector)),
            good=good,
            optimizer=where_kept(keep, state, progress.optimizer),
            step=progress.step + 1,
            diverged=diverged,
        )
        return after, None

    def _trained(
        self, vector: jax.Array, state: Any, key: jax.Array, rows: jax.Array
    ) -> tuple[jax.Array, jax.Array, Any]:
        loss, gradient = jax.value_and_grad(self._loss)(vector, key, rows)
        change, state = _optimizer(self.training).update(gradient, state, vector)
        return loss, vector + change, state

    def _loss(self, vector: jax.Array, key: jax.Array, rows: jax.Array) -> jax.Array:
        batch, weight = Example.of(rows, self.design)
        losses = self.design.losses(restored(self.design, vector), batch, key)
        return weight @ losses / jnp.maximum(weight.sum(), 1e-9)

    def losses(self, vector: jax.Array, held: jax.Array) -> jax.Array:
        """Return the lowest of the weighted mean losses over the held-out rows, ``[R]``."""
        if not len(held):
            return jnp.full(len(vector), jnp.inf)
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

    def shares(self, rows: Any) -> Any:
        """Return how often each reward occurs among rows ``[T, R, B, ...]``: ``[R, E]``.

        One additional row with equal shares of all rewards keeps the result away from 0 and 1.
        """
        batch, weight = Example.of(rows, self.design)
        total = (batch.reward * weight[..., None]).sum(axis=(0, 2))
        equal_share = 1 / max(self.design.reward_width, 2)
        return (total + equal_share) / (weight.sum(axis=(0, 2)) + 1)[:, None]

    @cached_property
    def _all_sums(self) -> Callable[..., jax.Array]:
        """`_sums` of all replicas, which JAX traces once for all programs that evaluate."""
        return jax.jit(jax.vmap(self._sums, in_axes=(0, 0, 0, None)))

    def _sums(
        self, vector: jax.Array, rows: jax.Array, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return the sum of one replica's weights, and its weighted sums of losses: ``[1 + T]``."""
        batch, weight = Example.of(rows, self.design)
        losses = self.design.held_out_losses(restored(self.design, vector), batch, share, key)
        # An absent row, of weight 0, may have a loss that is not finite.
        sums = jnp.where(weight[:, None] > 0, weight[:, None] * losses, 0.0).sum(axis=0)
        return jnp.concatenate([weight.sum(keepdims=True), sums])


def _optimizer(training: Training) -> optax.GradientTransformation:
    return optax.adamw(training.learning_rate, weight_decay=training.weight_decay)


@functools.cache
def _optimizer_start(training: Training, replicas: int, parameters: int) -> Any:
    """Return the optimizer's state before the first step: its moments and its count are zero.

    To compile the small programs that make the zeros would take a sixth of the time of a training
    program.

    Reference: Kingma and Ba (2015), algorithm 1.
    """
    vector = jax.ShapeDtypeStruct((replicas, parameters), jnp.float32)  # type: ignore[no-untyped-call]
    state = jax.eval_shape(jax.vmap(_optimizer(training).init), vector)
    return jax.tree.map(lambda part: np.zeros(part.shape, part.dtype), state)


def where_kept(keep: Any, new: Any, old: Any) -> Any:
    """Return ``new`` in the replicas where ``keep [R]`` is true, and ``old`` in the others."""

    def choose(one: jax.Array, other: jax.Array) -> jax.Array:
        return jnp.where(keep.reshape(-1, *[1] * (one.ndim - 1)), one, other)

    return jax.tree.map(choose, new, old)


def train(
    design: Design[Any],
    training: Training,
    minibatches: Minibatches,
    rng: np.random.Generator,
    start: Parameters | None = None,
    rows_before: Integers | None = None,
) -> Trained:
    """Train a model for each replica on its rows, from ``start [R, P]`` or from new parameters.

    With a fixed number of steps no rows are held out. Otherwise each replica trains until the loss
    of its held-out rows no longer decreases, from ``start``, the result of the last training on
    ``rows_before [R]`` rows. If `begins_anew` says so, it starts from new parameters, and returns
    those of ``start`` if they have the lower held-out loss. The compiled programs do not depend on
    the number of rows.
    """
    filled, early = minibatches.filled, training.stops_early
    replicas = len(filled)
    held_out = HeldOut.of(filled) if early else None
    trainer = _trainer(design, training, replicas)
    begin, advance = trainer.programs
    if held_out is None:
        limit = np.full(replicas, training.steps, np.int32)
        told = minibatches.table.reshape(1, replicas, -1, design.columns)
        held: jax.Array = jnp.zeros((0, replicas, HELD_OUT_BATCH, design.columns))
    else:
        limit, told = most_steps(filled, training), minibatches.held(held_out, HELD_OUT_BATCH)
        held = jnp.asarray(told)
    seeds = rng.integers(2**32, size=replicas, dtype=np.uint32)
    fresh = trainer.fresh(seeds, limit, trainer.shares(told))
    progress = begin(fresh, held)
    last = None
    if start is not None and (not early or rows_before is not None):
        anew = np.zeros(replicas, dtype=bool)
        if early and rows_before is not None:
            anew = begins_anew(rows_before, filled)
        # Early stopping is off for the first `least` steps from new parameters.
        least = jnp.asarray(np.where(anew, design.least_steps, 0).astype(np.int32))

        def begun(vector: Any) -> Progress:
            parameters = jnp.asarray(vector)
            return begin(fresh._replace(vector=parameters, good=parameters, least=least), held)

        # This computes the held-out loss of the old parameters.
        last = begun(start)
        progress = begun(np.where(anew[:, None], progress.best, start))
    draw = row_source(minibatches)
    for _ in range(-(-int(limit.max()) // trainer.block)):
        progress = advance(progress, draw(trainer.block, training.batch, rng, held_out), held)
        # A replica that has stopped has limit 0.
        if early and not np.any(progress.limit):
            break
    best, loss, best_step, diverged = jax.device_get(
        (progress.best, progress.loss, progress.best_step, progress.diverged)
    )
    if last is not None:
        returns = anew & (np.asarray(last.loss) < loss)
        best = np.where(returns[:, None], last.best, best)
        best_step = np.where(returns, 0, best_step)
    steps = best_step.astype(np.int64) if early else None
    return Trained(best, diverged.astype(np.int64), steps)


def refit(
    state: Any,
    buffer: Buffer,
    news: Booleans,
    design: Design[Any],
    training: Training,
    columns: tuple[NDArray[Any], Floats],
    rng: np.random.Generator,
    exported: Callable[[Parameters], Mapping[str, Any]],
    start: Parameters | None = None,
    largest_deviation: float = 0.0,
) -> Any:
    """Return the ``state`` after training its network on all rows of the ``buffer``.

    ``columns`` are the actions and the rewards of `Minibatches.of`, and ``exported`` makes the
    fields of the state that follow from the trained parameters. A replica without ``news [R]``, or
    whose training diverged, keeps its network, if it has one.
    """
    scaling = ContextScaling.of(buffer, largest_deviation) if training.stops_early else None
    rows = Minibatches.of(buffer, *columns, scaling)
    trained = train(design, training, rows, rng, start, state.buffer.filled)
    warn_of_divergence(trained.diverged)
    found = {"parameters": trained.parameters, "scaling": scaling, **exported(trained.parameters)}
    learned = news & ((trained.diverged < 0) | (state.buffer.filled == 0))
    chosen = {key: where_chosen(learned, new, getattr(state, key)) for key, new in found.items()}
    return state._replace(buffer=buffer, **chosen)


def begins_anew(rows_before: Integers, filled: Integers) -> Booleans:
    """Return whether training starts from new parameters: ``[R]``.

    It does if the number of rows has passed a power of two, since parameters that fit few rows may
    be a bad start for many, or is too small to hold rows out: continuing would overfit.
    """
    doublings = [np.floor(np.log2(np.maximum(rows, 1))) for rows in (rows_before, filled)]
    return (doublings[0] != doublings[1]) | (filled < MIN_ROWS_TO_HOLD_OUT)


_trainer = functools.cache(Trainer)
