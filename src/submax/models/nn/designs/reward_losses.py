"""The loss of a network of p(action | reward) as a predictor of the reward, by Bayes' rule."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from submax.models.nn.designs.design import Example


def reward_losses(
    log_prob_at: Callable[[Example, jax.Array], jax.Array], batch: Example, share: jax.Array
) -> jax.Array:
    """Return −log (p(a | c, r) / Σ_e p_e p(a | c, e)) for each example: ``[B]``.

    ``log_prob_at`` returns the log-probability of an example's action at any encoded reward, and
    ``share [E]`` is p_e, how often bin edge e occurs. By Bayes' rule the result is −log p(r | a, c)
    plus a term that does not depend on the network, provided that the distribution of rewards is
    the same in every context.
    """

    def loss(example: Example) -> jax.Array:
        each = jax.vmap(log_prob_at, in_axes=(None, 0))(example, jnp.eye(len(share)))
        return jax.nn.logsumexp(each, b=share) - log_prob_at(example, example.reward)

    return jax.vmap(loss)(batch)
