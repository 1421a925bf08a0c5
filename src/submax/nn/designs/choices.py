"""Encoding of actions as network inputs, and log-probabilities of choices."""

import jax
import jax.numpy as jnp


def features(action: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """Return one-hot choices, then the real-valued parts from −1 to 1: ``[S] -> [C + d]``."""
    choices = one_hot(action, sizes)
    return jnp.concatenate([choices, 2 * action[len(sizes) :] - 1])


def one_hot(action: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """Return the one-hot choices of all slots, one slot after the other: ``[S] -> [C]``."""
    slots = [jax.nn.one_hot(action[slot].astype(int), size) for slot, size in enumerate(sizes)]
    return jnp.concatenate([*slots, jnp.zeros(0)])


def log_prob(logits: jax.Array, chosen: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """Return Σ_s log softmax(logits of slot s) at its choice: ``[C]`` and one-hot ``[C] -> []``."""
    total, first = jnp.zeros(()), 0
    for size in sizes:
        slot = logits[first : first + size]
        total += slot @ chosen[first : first + size] - jax.nn.logsumexp(slot)
        first += size
    return total
