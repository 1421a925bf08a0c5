"""Where networks are trained."""

import jax

from submax.core.errors import InputError


def check_gpu() -> None:
    """Refuse to go on where JAX trains on the CPU."""
    if jax.default_backend() == "cpu":
        seen = ", ".join(str(device) for device in jax.devices())
        raise InputError(f"JAX sees no GPU here, only {seen}; leave --device out, or say cpu")
