"""Where networks are trained."""

import os

import jax

from submax.core.errors import InvalidValue


def on_gpu() -> bool:
    """Whether JAX trains on something faster than the CPU."""
    return jax.default_backend() != "cpu"


def check_gpu() -> None:
    """Refuse to go on without a GPU."""
    if not on_gpu():
        seen = ", ".join(str(device) for device in jax.devices())
        asked = os.environ.get("JAX_PLATFORMS", "")
        hint = f" and JAX_PLATFORMS={asked}" if asked else ""
        raise InvalidValue(f"JAX sees no GPU here, only {seen}{hint}; leave --device out")
