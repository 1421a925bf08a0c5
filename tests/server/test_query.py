"""Query parameters that an operation does not declare are refused, never ignored."""

import pytest

from submax.server.api import OPERATIONS

from .conftest import contents

EXPORT = "/bandits/b/export"
ABOUT_THE_SERVER = [("openapi", "GET", "/openapi.json"), ("metrics", "GET", "/metrics")]
ALL = [(one.name, one.method, one.path) for one in OPERATIONS if not one.hidden]
ALL += ABOUT_THE_SERVER


@pytest.fixture(scope="module")
def http(shared_serving, shared_store):
    """One server for all tests: what is refused leaves it as it was."""
    client = shared_serving(shared_store, rate=1e9)
    body = {"name": "b", "actions": {"s": ["A", "B"], "p": ["C"]}, "policy": "random"}
    assert client.post("/bandits", json=body).status_code == 201
    return client


def place(path):
    return path.format(name="b", id="none")


def is_refused(answer):
    return answer.status_code == 400 and answer.json()["code"] == "invalid-input"


def test_every_operation_refuses_an_unknown_parameter(http, shared_store):
    before = contents(shared_store)
    for name, method, path in ALL:
        answer = http.request(method, f"{place(path)}?limt=5")
        assert is_refused(answer), name
        assert "limt" in answer.json()["error"], name
    assert contents(shared_store) == before


@pytest.mark.parametrize("query", ["=x", "Before=s", "%ff=1", "before[]=s"])
def test_names_must_be_the_same_to_the_letter(http, query):
    assert is_refused(http.get(f"{EXPORT}?{query}"))
    assert http.request("HEAD", f"{EXPORT}?{query}").status_code == 400


def test_without_a_key_nothing_is_said_about_parameters(serving, store, key):
    key("admin")
    assert serving(store).get("/bandits?limt=5").status_code == 401
