"""Requests made from the description, right and wrong; what comes back must be as described."""

import os
import warnings

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from submax.live.memory_store import MemoryStore
from submax.live.open import ContextIgnored
from submax.server.app import make_app
from submax.server.service import Service

EXAMPLES = 400 if "SUBMAX_SOAK" in os.environ else 25
# What fits the description can still make no sense, such as a reward beyond the scale.
LEFT_OUT = [positive_data_acceptance]
SERVICE = Service(MemoryStore())
APP = make_app(SERVICE, rate=1e9)


async def app(scope, receive, send):
    """Without its beginning and end, which every request of schemathesis would go through."""
    if scope["type"] == "http":
        await APP(scope, receive, send)
        return
    for word in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{word}.complete"})


SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", app)


@pytest.fixture(scope="module")
def key():
    """That of an administrator, after two bandits were made whose names are often tried."""
    _, text = SERVICE.keys.add(["admin"])
    SERVICE.create("0", {"actions": ["A", "B"]})
    SERVICE.create("a", {"actions": {"s": ["A"], "p": [0.0, 1.0]}, "policy": "random"})
    SERVICE.start()
    yield {"Authorization": f"Bearer {text}"}
    SERVICE.close()


@SCHEMA.parametrize()
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_described(case, key):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContextIgnored)
        case.call_and_validate(headers=key, excluded_checks=LEFT_OUT)
