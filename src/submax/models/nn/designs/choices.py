"""Encoding of actions as network inputs, and log-probabilities of choices."""

import jax
import jax.numpy as jnp
import numpy as np


def features(action: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """Return an action as inputs of a network: ``[S] -> [C + d]``.

    The inputs are the one-hot choices of all slots, then the d real-valued parts. A real-valued
    part lies between 0 and 1 in ``action``, and between −1 and 1 in the result. ``sizes`` are the
    numbers of choices of the slots.
    """
    choices = one_hot(action, sizes)
    return jnp.concatenate([choices, 2 * action[len(sizes) :] - 1])


def one_hot(action: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """Return the one-hot choices of all slots, one slot after the other: ``[S] -> [C]``."""
    slots = [jax.nn.one_hot(action[slot].astype(int), size) for slot, size in enumerate(sizes)]
    return jnp.concatenate([*slots, jnp.zeros(0)])


def log_prob(logits: jax.Array, chosen: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """Return the log-probability of the choices of all slots together, a scalar.

    It is the sum over slots of log softmax(``logits`` of the slot) at the slot's choice. ``logits
    [C]`` and the one-hot choices ``chosen [C]`` have one slot after the other. An accelerator
    computes all slots together, which takes a fraction of the operations.
    """
    if len(sizes) > 1 and jax.default_backend() != "cpu":
        return log_prob_together(logits, chosen, sizes)
    total, first = jnp.zeros(()), 0
    for size in sizes:
        slot = logits[first : first + size]
        total += slot @ chosen[first : first + size] - jax.nn.logsumexp(slot)
        first += size
    return total


def log_prob_together(logits: jax.Array, chosen: jax.Array, sizes: tuple[int, ...]) -> jax.Array:
    """Return `log_prob` by one operation for all slots, each of which masks the other ones.

    The sum of exponentials has more terms than by slot, and most of them are 0.
    """
    count = sum(sizes)
    slot_of = np.repeat(np.arange(len(sizes)), sizes)
    own = slot_of == np.arange(len(sizes))[:, None]
    masked = jnp.where(own, logits[:count], -jnp.inf)
    return (logits[:count] * chosen).sum() - jax.nn.logsumexp(masked, axis=1).sum()
