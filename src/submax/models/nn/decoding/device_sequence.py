"""The distribution of an autoregressive network in given contexts, on the device of JAX."""

import functools
from dataclasses import dataclass
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.conditioning.conditional_distribution import ConditionalDistribution
from submax.models.networks.autoregressive_network import AutoregressiveNetwork
from submax.models.networks.slot_choices import first_choices

ACTIVATIONS_AT_ONCE = 2**24
"""About how many activations are held in the memory of the device, 64 MB of float32; more actions
are processed in parts, all of the same size, so that one program is compiled for all of them."""
BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))
"""The largest uniform number: numbers of float64 next to 1 would be rounded up to 1."""
FEWEST_AT_ONCE = 2**12
"""Fewer actions than these, in each replica, are filled up, so that few programs are compiled."""


@dataclass(frozen=True)
class DeviceSequence(ConditionalDistribution):
    """The distribution of `DecodedSequence`, for many actions at a time on an accelerator.

    All actions are evaluated alone, in float32. ``given [R, L, N, H]`` is what the contexts add to
    the first layer of the ``network``, and ``row [R, n]`` are the places of the rows among its N.
    The same random numbers give the same draws as `DecodedSequence`, up to rounding.
    """

    network: AutoregressiveNetwork
    given: Any
    row: Integers
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, network: AutoregressiveNetwork, given: Floats, sizes: tuple[int, ...]) -> Self:
        """Return the distribution of a network, whose arrays are copied to the device."""
        replicas, levels, rows, hidden = given.shape
        # Rows are filled up to a power of two, so that few programs are compiled.
        filled = np.zeros((replicas, levels, _next_power(rows), hidden))
        filled[:, :, :rows] = given
        copied = jax.tree.map(jnp.asarray, network)
        row = np.broadcast_to(np.arange(rows), (replicas, rows))
        return cls(copied, jnp.asarray(filled, dtype=jnp.float32), row, sizes)

    def prob(self, action: Integers) -> Floats:
        replicas, rows = self.row.shape
        count, slots = action.shape[2:]
        every = np.broadcast_to(action, (replicas, rows, count, slots)).astype(np.int32)
        flat = np.moveaxis(every.reshape(replicas, rows * count, slots), 2, 0)
        program = functools.partial(_probabilities, self.network, self.given, sizes=self.sizes)
        found = self._in_parts(program, flat, count)
        shaped = found.reshape(replicas, found.shape[1], rows, count)
        return shaped.swapaxes(1, 2).astype(np.float64)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Integers:
        replicas, rows = self.row.shape
        uniform = rng.random((len(self.sizes), replicas, rows, count))
        flat = uniform.reshape(len(self.sizes), replicas, rows * count).astype(np.float32)
        flat = np.minimum(flat, BELOW_ONE)
        program = functools.partial(
            _draws, self.network, self.given, np.int32(level), sizes=self.sizes
        )
        found = self._in_parts(program, flat, count)
        drawn = found.swapaxes(1, 2).reshape(replicas, rows, count, len(self.sizes))
        return drawn.astype(np.int64)

    def rows(self, row: Integers) -> "DeviceSequence":
        chosen = np.take_along_axis(self.row, row, axis=1)
        return DeviceSequence(self.network, self.given, chosen, self.sizes)

    def _in_parts(self, program: Any, numbers: NDArray[Any], count: int) -> NDArray[Any]:
        """Apply a program to ``numbers [S, R, m]`` of ``count`` actions in each row.

        The program has results ``[R, any, part]`` for parts of the m actions, which are joined.
        """
        replicas, levels, _, hidden = self.given.shape
        length = numbers.shape[2]
        widest = max(hidden, *self.sizes)
        most = max(1, ACTIVATIONS_AT_ONCE // (replicas * levels * widest))
        together = min(_next_power(most + 1) // 2, _next_power(max(length, FEWEST_AT_ONCE)))
        row = np.repeat(self.row.astype(np.int32), count, axis=1)
        parts = []
        for begin in range(0, length or 1, together):
            place = slice(begin, begin + together)
            missing = together - row[:, place].shape[1]
            found = program(
                np.pad(row[:, place], ((0, 0), (0, missing))),
                np.pad(numbers[:, :, place], ((0, 0), (0, 0), (0, missing))),
            )
            parts.append(found)
        joined: NDArray[Any] = np.concatenate(jax.device_get(parts), axis=2)[..., :length]
        return joined


def _next_power(number: int) -> int:
    """Return the smallest power of two that is not below a number."""
    return 1 << max(number - 1, 0).bit_length()


@functools.partial(jax.jit, static_argnames="sizes")
def _probabilities(
    network: Any, given: jax.Array, row: jax.Array, action: jax.Array, *, sizes: tuple[int, ...]
) -> jax.Array:
    """Return the probability of an action for each row: ``[R, m]``, ``[S, R, m] -> [R, L, m]``."""
    reached = jnp.take_along_axis(given, row[:, None, :, None], axis=2)
    found = jnp.ones(reached.shape[:3])
    for slot in range(len(sizes)):
        choice = action[slot][:, None, :, None]
        chances = _chances(network, reached, slot, sizes)
        found *= jnp.take_along_axis(chances, choice, axis=3)[..., 0]
        reached += _of_choices(network, choice, slot, sizes)
    return found


@functools.partial(jax.jit, static_argnames="sizes")
def _draws(
    network: Any,
    given: jax.Array,
    level: jax.Array,
    row: jax.Array,
    uniform: jax.Array,
    *,
    sizes: tuple[int, ...],
) -> jax.Array:
    """Draw an action at a level for uniform numbers: ``[R, m]``, ``[S, R, m] -> [R, S, m]``."""
    one = jax.tree.map(lambda part: _at_level(part, level), network)
    reached = jnp.take_along_axis(_at_level(given, level), row[:, None, :, None], axis=2)
    chosen = []
    for slot, size in enumerate(sizes):
        rising = jnp.cumsum(_chances(one, reached, slot, sizes)[:, 0], axis=-1)
        before, total = rising[..., : size - 1], rising[..., -1:]
        # A product that is rounded up to the total draws the last choice that has a probability.
        passed = (before <= uniform[slot][..., None] * total) & (before < total)
        chosen.append(passed.sum(axis=-1))
        reached += _of_choices(one, chosen[-1][:, None, :, None], slot, sizes)
    return jnp.stack(chosen, axis=1)


def _at_level(part: jax.Array, level: jax.Array) -> jax.Array:
    """Return an array at one level, which keeps its axis; the head is the same at every level."""
    if part.shape[1] == 1:
        return part
    return jax.lax.dynamic_slice_in_dim(part, level, 1, axis=1)


def _chances(
    network: AutoregressiveNetwork, reached: jax.Array, slot: int, sizes: tuple[int, ...]
) -> jax.Array:
    """Return the probabilities of a slot's choices: ``[R, L, m, H] -> [R, L, m, K]``."""
    begin = int(first_choices(sizes)[slot])
    own = slice(begin, begin + sizes[slot])
    # Without this precision, a GPU would round the factors to 10 bits.
    product = functools.partial(jnp.matmul, precision="highest")
    hidden = jax.nn.relu(reached + network.slot_bias[:, :, slot : slot + 1])
    hidden = jax.nn.relu(product(hidden, network.second_weight) + network.second_bias)
    logits = product(hidden, network.head_weight[..., own]) + network.head_bias[..., own]
    return jax.nn.softmax(logits, axis=-1)


def _of_choices(
    network: AutoregressiveNetwork, choice: jax.Array, slot: int, sizes: tuple[int, ...]
) -> jax.Array:
    """Return what choices ``[R, 1, m, 1]`` of a slot add to the first layer: ``[R, L, m, H]``."""
    place = choice + int(first_choices(sizes)[slot])
    return jnp.take_along_axis(jnp.asarray(network.choice_weight), place, axis=2)
