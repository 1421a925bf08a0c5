"""Requests made from the description, right and wrong; what comes back must be as described."""

import os
import tempfile
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from submax.bandit.store import open_store
from submax.server.app import App
from submax.server.service import Service

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::submax.core.errors.ContextIgnoredWarning"),
]

SOAK = "SUBMAX_SOAK" in os.environ
EXAMPLES = 400 if SOAK else 4
# Every boundary of every field takes seconds for each operation, most of them to find it.
# On a busy machine an export, which is written by a process of its own, takes a while.
CONFIGURATION = schemathesis.Config.from_dict(
    {"phases": {"coverage": {"enabled": SOAK}}, "request-timeout": 300}
)
# What fits the description can still make no sense, such as a reward beyond the scale.
LEFT_OUT = [positive_data_acceptance]
SERVICE = Service(open_store(Path(tempfile.mkdtemp()) / "served.db"))
APP = App(SERVICE, rate=1e9)


async def app(scope, receive, send):
    """Without its beginning and end, which every request of schemathesis would go through."""
    if scope["type"] == "http":
        await APP(scope, receive, send)
        return
    for word in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{word}.complete"})


MIXED = {"actions": {"s": ["A"], "p": [0.0, 1.0]}, "policy": "random"}
EXISTING = {"type": "string", "enum": ["mixed", "page"]}
"""Names of bandits that exist, so that more is reached."""


def of_known_bandits() -> dict:
    """The description without deleting, so that all operations reach the bandits."""
    described = schemathesis.openapi.from_asgi("/openapi.json", app, config=CONFIGURATION)
    for operations in described.raw_schema["paths"].values():
        operations.pop("delete", None)
        for operation in operations.values():
            for parameter in operation["parameters"]:
                if parameter["name"] == "name":
                    parameter["schema"] = EXISTING
    return described.raw_schema


SCHEMA = schemathesis.openapi.from_dict(of_known_bandits(), config=CONFIGURATION)
SCHEMA.app = app


@pytest.fixture(scope="module")
def key():
    """That of an administrator, in a store with bandits of each kind.

    Requests do not leave this process, so that no proxy need be looked for.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("requests.sessions.get_environ_proxies", lambda url, no_proxy=None: {})
        _, text = SERVICE.keys.add(["admin"])
        SERVICE.create("mixed", MIXED, who="test")
        fields = {"age": {"default": 1.0}, "country": {"values": ["fr", "de"], "default": "fr"}}
        page = {"actions": {"s": ["A"]}, "context": fields, "policy": "linucb"}
        SERVICE.create("page", page, who="test")
        SERVICE.start()
        yield {"Authorization": f"Bearer {text}"}
        SERVICE.close()


SETTINGS = settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def described():
    return SCHEMA


def answers_as_described(operation):
    """A test of one operation; its requests are made up when it runs, not when it is found."""
    schema = schemathesis.pytest.from_fixture("described")

    @schema.include(operation_id=operation).parametrize()
    @SETTINGS
    def test(case, key):
        case.call_and_validate(headers=key, excluded_checks=LEFT_OUT)

    return test


# Each has a name of its own, so that workers share the operations.
for methods in SCHEMA.raw_schema["paths"].values():
    for one in methods.values():
        name = one["operationId"]
        spoken = f"test_{name.replace('-', '_')}_answers_as_described"
        globals()[spoken] = answers_as_described(name)
