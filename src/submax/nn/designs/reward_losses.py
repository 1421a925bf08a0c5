"""How well a network that knows actions by their reward knows rewards by their action."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from submax.nn.designs.design import Example


def reward_losses(
    log_prob_at: Callable[[Example, jax.Array], jax.Array], batch: Example, share: jax.Array
) -> jax.Array:
    """−log p(a | c, r) / Σ_e p_e p(a | c, e), for each example: ``[B]``.

    ``log_prob_at`` is the log-probability of an example's action at any embedded reward; ``share
    [E]`` is p_e. By Bayes' rule this is −log p(r | a, c), but for a term without the network, if
    all contexts earn each reward equally often.
    """

    def loss(example: Example) -> jax.Array:
        each = jax.vmap(log_prob_at, in_axes=(None, 0))(example, jnp.eye(len(share)))
        return jax.nn.logsumexp(each, b=share) - log_prob_at(example, example.reward)

    return jax.vmap(loss)(batch)
