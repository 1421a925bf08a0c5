"""The log-density of real-valued parts of an action, in JAX for training."""

import jax
import jax.numpy as jnp

from submax.models.networks.density_head import (
    FIRST_WIDTH,
    LOG_NARROWEST,
    LOG_RANGE,
    REACH,
    first_locations,
)


def log_density(output: jax.Array, numbers: jax.Array, components: int) -> jax.Array:
    """Return log Σ_k α_k Π_j f(x_j; m_kj, s_kj): ``[K (1 + 2d)]`` and numbers ``[d] -> []``.

    This is the density of `MixtureDensity`, which explains f.
    """
    reals = numbers.shape[0]
    end = components + components * reals
    chances, places, widths = jnp.split(output, [components, end])
    shape = (components, reals)
    location = jnp.asarray(first_locations(components, reals), dtype=output.dtype)
    location += REACH * jnp.tanh(places / REACH).reshape(shape)
    share = jax.nn.sigmoid(widths + FIRST_WIDTH).reshape(shape)
    log_scale = LOG_NARROWEST + LOG_RANGE * share
    scale = jnp.exp(log_scale)
    place = (numbers - location) / scale
    inside = jax.nn.log_sigmoid((1 - location) / scale) + jax.nn.log_sigmoid(location / scale)
    inside += jnp.log(-jnp.expm1(-1 / scale)) + log_scale
    terms = jax.nn.log_sigmoid(place) + jax.nn.log_sigmoid(-place) - inside
    return jax.nn.logsumexp(jax.nn.log_softmax(chances) + terms.sum(axis=1))
