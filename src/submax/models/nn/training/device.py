"""The device on which networks are trained."""

import jax

from submax.core.errors import InputError


def check_gpu() -> None:
    """Raise an ``InputError`` if JAX has no GPU."""
    if jax.default_backend() == "cpu":
        seen = ", ".join(str(device) for device in jax.devices())
        raise InputError(
            f"JAX sees no GPU here, only {seen}: leave --device out, or use --device cpu"
        )
