"""Query parameters that an operation does not declare are refused, never ignored."""

import pytest

from submax.server.api import OPERATIONS

from .conftest import contents

DECISIONS = "/bandits/b/decisions"
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


@pytest.fixture(scope="module")
def described(http):
    """What the server says of each operation, by its name."""
    paths = http.get("/openapi.json").json()["paths"]
    return {one["operationId"]: one for methods in paths.values() for one in methods.values()}


def place(path):
    return path.format(name="b", id="none")


def declared(operation):
    """The query parameters that the description of an operation allows."""
    return [one["name"] for one in operation["parameters"] if one["in"] == "query"]


def is_refused(answer):
    return answer.status_code == 400 and answer.json()["code"] == "invalid-input"


def test_these_are_all_operations_of_the_description(described):
    assert sorted(described) == sorted(name for name, _, _ in ALL)


def test_every_operation_refuses_an_unknown_parameter(http, shared_store):
    before = contents(shared_store)
    for name, method, path in ALL:
        answer = http.request(method, f"{place(path)}?limt=5")
        assert is_refused(answer), name
        assert "limt" in answer.json()["error"], name
    assert contents(shared_store) == before


def test_no_operation_refuses_a_parameter_that_it_declares(http, described):
    tried = set()
    for name, method, path in ALL:
        for parameter in declared(described[name]):
            answer = http.request(method, place(path), params={parameter: "x"})
            assert "unknown query parameter" not in answer.text, (name, parameter)
            tried.add(parameter)
    assert tried == {"before", "unit"}


@pytest.mark.parametrize("query", ["=x", "Unit=s", "unit%00=s", "%ff=1", "a;b", "unit[]=s"])
def test_names_must_be_the_same_to_the_letter(http, query):
    assert is_refused(http.get(f"{DECISIONS}?{query}"))


def test_a_query_may_have_no_name_and_of_two_values_the_last_one_counts(http):
    assert http.get("/healthz?&&").status_code == 200
    assert http.get(f"{DECISIONS}?unit=a b&unit=c").status_code == 200


def test_head_is_checked_as_get_is(http):
    assert http.request("HEAD", DECISIONS).status_code == 200
    assert http.request("HEAD", f"{DECISIONS}?limt=5").status_code == 400


def test_without_a_key_nothing_is_said_about_parameters(serving, store, key):
    key("admin")
    assert serving(store).get("/bandits?limt=5").status_code == 401
