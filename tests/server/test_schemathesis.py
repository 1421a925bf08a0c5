"""Requests made from the description, right and wrong; what comes back must be as described."""

import copy
import os
import tempfile
from functools import partial
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


SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", app, config=CONFIGURATION)
MIXED = {"actions": {"s": ["A"], "p": [0.0, 1.0]}, "policy": "random"}
NAMES = ["mixed", "page"]
DIFFERENT = ("decide", "decide-many", "reward", "reward-many", "change")
"""Operations that depend on the actions and the context of a bandit; others are tried for one
bandit, and with ``SUBMAX_SOAK`` for both."""


def of_known_bandits() -> dict:
    """The description with bandits that exist in its paths, so that more is reached."""
    raw = copy.deepcopy(SCHEMA.raw_schema)
    paths = {path: one for path, one in raw["paths"].items() if "{name}" in path}
    raw["paths"] = {}
    for name in NAMES:
        for path, operations in copy.deepcopy(paths).items():
            for operation in operations.values():
                operation["operationId"] += f"-{name}"
                given = operation["parameters"]
                operation["parameters"] = [one for one in given if one["name"] != "name"]
            raw["paths"][path.replace("{name}", name)] = operations
    return raw


KNOWN = schemathesis.openapi.from_dict(of_known_bandits(), config=CONFIGURATION)
KNOWN.app = app


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


@pytest.fixture(scope="module")
def known():
    return KNOWN


def answers_as_described(fixture, operation):
    """A test of one operation; its requests are made up when it runs, not when it is found."""
    schema = schemathesis.pytest.from_fixture(fixture)

    @schema.include(operation_id=operation).parametrize()
    @SETTINGS
    def test(case, key):
        case.call_and_validate(headers=key, excluded_checks=LEFT_OUT)

    return test


def is_tried(path, operation):
    """Whether an operation of a path is tried.

    A bandit that was deleted would not be reached by the others. What has a body is tried only for
    bandits that exist: names are read in the same way if there is no body.
    """
    name = operation["operationId"]
    of_unknown = "{name}" in path and "requestBody" in operation
    again = name.endswith("-mixed") and name.removesuffix("-mixed") not in DIFFERENT
    return not (name.startswith("delete-") or (again and not SOAK) or of_unknown)


# Each has a name of its own, so that workers share the operations.
for fixture, schema in (("described", SCHEMA), ("known", KNOWN)):
    for path, methods in schema.raw_schema["paths"].items():
        for one in filter(partial(is_tried, path), methods.values()):
            name = one["operationId"]
            spoken = f"test_{name.replace('-', '_')}_answers_as_described"
            globals()[spoken] = answers_as_described(fixture, name)
