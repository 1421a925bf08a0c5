"""Choices in slots as one-hot vectors, and their probability."""

import jax
import jax.numpy as jnp


def one_hot(action: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """The one-hot choices of all slots, one behind the other: ``[S] -> [C]``."""
    return jnp.concatenate([jax.nn.one_hot(action[slot], size) for slot, size in enumerate(sizes)])


def log_prob(logits: jax.Array, chosen: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """Σ_s log softmax of each slot at its choice: ``[C]`` and one-hot ``[C] -> []``."""
    total, first = jnp.zeros(()), 0
    for size in sizes:
        slot = logits[first : first + size]
        total += slot @ chosen[first : first + size] - jax.nn.logsumexp(slot)
        first += size
    return total
