"""Requests made from the description, right and wrong; what comes back must be as described."""

import os
import warnings

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.specs.openapi.checks import positive_data_acceptance

from submax.live.memory_store import MemoryStore
from submax.live.open import ContextIgnored
from submax.server.app import make_app
from submax.server.keys import Keys
from submax.server.service import Service

EXAMPLES = 400 if "SUBMAX_SOAK" in os.environ else 25
load_all_checks()
# What fits the description can still make no sense, such as a reward beyond the scale.
LEFT_OUT = [positive_data_acceptance]


@pytest.fixture(scope="module")
def api():
    """The application with a bandit of each kind, and a key that may do everything."""
    store = MemoryStore()
    service = Service(store)
    _, text = service.keys.add(["admin"])
    service.create("arms", {"actions": ["A", "B"]})
    service.create("a", {"actions": {"s": ["A"], "p": [0.0, 1.0]}, "policy": "random"})
    service.start()
    schema = schemathesis.openapi.from_asgi("/openapi.json", make_app(service))
    yield schema, {"Authorization": f"Bearer {text}"}
    service.close()


schema = schemathesis.pytest.from_fixture("described")


@pytest.fixture(scope="module")
def described(api):
    return api[0]


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_described(case, api):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContextIgnored)
        case.call_and_validate(headers=api[1], excluded_checks=LEFT_OUT)
