import jax
import pytest


@pytest.fixture
def compiled():
    """What JAX compiles during a test; a list that grows."""
    heard = []

    def listen(event, duration, **facts):
        if "backend_compile" in event:
            heard.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield heard
    unregister = getattr(jax.monitoring, "unregister_event_duration_listener", None)
    if unregister is not None:
        unregister(listen)
