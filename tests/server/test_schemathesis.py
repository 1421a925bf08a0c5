"""Requests made from the description, right and wrong; what comes back must be as described."""

import copy
import os

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from submax.live.memory_store import MemoryStore
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
NAMES = ["arms", "mixed", "page"]


def of_known_bandits() -> dict:
    """The description with the names of bandits that exist, so that more is reached."""
    raw = copy.deepcopy(SCHEMA.raw_schema)
    for path, operations in raw["paths"].items():
        for operation in operations.values():
            for parameter in operation["parameters"]:
                if parameter["name"] == "name":
                    parameter["schema"] = {"enum": NAMES}
    raw["paths"] = {path: one for path, one in raw["paths"].items() if "{name}" in path}
    return raw


KNOWN = schemathesis.openapi.from_dict(of_known_bandits())


@pytest.fixture(scope="module")
def key():
    """That of an administrator, in a store with bandits of each kind."""
    _, text = SERVICE.keys.add(["admin"])
    SERVICE.create("arms", {"actions": ["A", "B"], "rewards": "continuous", "policy": "random"})
    SERVICE.create("mixed", {"actions": {"s": ["A"], "p": [0.0, 1.0]}, "policy": "random"})
    fields = {"age": {"default": 1.0}, "country": {"values": ["fr", "de"], "default": "fr"}}
    SERVICE.create("page", {"actions": {"s": ["A"]}, "context": fields, "policy": "linucb"})
    SERVICE.start()
    yield {"Authorization": f"Bearer {text}"}
    SERVICE.close()


SETTINGS = settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@SCHEMA.parametrize()
@SETTINGS
@pytest.mark.filterwarnings("ignore::submax.live.open.ContextIgnored")
def test_every_answer_is_as_described(case, key):
    case.call_and_validate(headers=key, excluded_checks=LEFT_OUT)


@KNOWN.parametrize()
@SETTINGS
def test_every_answer_about_a_bandit_that_exists_is_as_described(case, key):
    case.call_and_validate(app=app, headers=key, excluded_checks=LEFT_OUT)


def test_authorization_that_is_ignored_would_be_noticed(key, monkeypatch):
    monkeypatch.setattr(SERVICE.keys, "needed", False)
    case = SCHEMA["/bandits"]["GET"].Case()
    with pytest.raises(Exception, match="Authentication"):
        case.call_and_validate(headers=key, excluded_checks=LEFT_OUT)
