"""Wrong and hostile requests are refused and change nothing."""

import dataclasses
import json
import re
import sys
import typing
from concurrent.futures import ThreadPoolExecutor
from types import UnionType

import pytest
from refusals import raises_code

from submax.estimators import ESTIMATORS
from submax.policies import POLICIES
from submax.schema.rewards import SCALES
from submax.server.api import OPERATIONS
from submax.server.limits import FREE, LIMITS, OTHERS, check_parameters
from submax.strategies import STRATEGIES

from .conftest import contents

JSON_TYPE = "application/json"
JSON = {"content-type": JSON_TYPE}
ARMS = {"name": "arms", "actions": ["A", "B", "C"], "context": {"country": ["fr", "de"]}}
ARMS["policy"] = {"kind": "linucb"}
CONTEXT = {"context": {"country": "fr"}}
DECIDE, REWARD = "/bandits/arms/decide", "/bandits/arms/reward"
SQL = "'; DROP TABLE events; --"
SCRIPT = "<script>alert(1)</script>"
NUL, EMOJI = "a\0b", "\N{GRINNING FACE}\N{FAMILY}"
HUGE = 10**400


@pytest.fixture(scope="module")
def http(shared_serving, shared_store):
    """One server for most tests: what is refused leaves it as it was."""
    client = shared_serving(shared_store, rate=1e9)
    assert client.post("/bandits", json=ARMS).status_code == 201
    assert client.post(DECIDE, json={"id": "d1", **CONTEXT}).status_code == 200
    assert client.post(REWARD, json={"id": "d1", "value": 1.0}).status_code == 200
    return client


@pytest.fixture
def refused(http, shared_store):
    """Send something that is answered with a status and a sentence, and changes nothing."""

    def refused(status, method, path, **options):
        before = contents(shared_store)
        answer = http.request(method, path, **options)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/json"
        told = answer.json()
        assert list(told) == ["error", "code"]
        assert re.fullmatch("[a-z]+(-[a-z]+)*", told["code"])
        assert 0 < len(told["error"]) <= 500
        assert "\n" not in told["error"]
        assert "Traceback" not in told["error"]
        assert contents(shared_store) == before
        return answer

    return refused


WRONG_JSON = {
    "empty": b"",
    "list": b'[{"id": "d2", "value": 1}]',
    "no utf-8": b'{"id": "d2\xff", "value": 1}',
    "nul": b'{"id": "d2\\u0000", "value": 1}',
    "long id": json.dumps({"id": "d" * 129, "value": 1}).encode(),
    "unknown field": b'{"id": "d2", "value": 1, "valeu": 1}',
    "nan": b'{"id": "d2", "value": NaN}',
    "huge": json.dumps({"id": "d2", "value": HUGE}).encode(),
    "out of the scale": b'{"id": "d2", "value": 2}',
    "text value": b'{"id": "d2", "value": "1"}',
    "very deep": b"[" * 400_000 + b"]" * 400_000,
    # To look for its end again from each quote would take hours.
    "text that never ends": b"[" * 20 + b'{"' + b'\\"' * 400_000,
}


WRONG_CREATE = {
    "no actions": {"actions": None},
    "too many choices": {"actions": [str(number) for number in range(10_001)]},
    "too many fields": {"context": {str(number): "number" for number in range(1001)}},
    "too many categories": {"context": {"c": [str(number) for number in range(10_001)]}},
    "newline behind the name": {"name": "new\n"},
    "unknown parameter": {"policy": {"kind": "epsilon-greedy", "epsilom": 0.1}},
    "huge parameter": {"policy": {"kind": "epsilon-greedy", "epsilon": HUGE}},
    "policy that decides forever": {"policy": {
        "kind": "reward-conditioned", "strategy": {"kind": "iterated", "depth": 10**9},
        "estimator": "counting"}},
    "policy that trains forever": {"policy": {
        "kind": "reward-conditioned", "strategy": "submax",
        "estimator": {"kind": "softmax", "training": {"steps": 10**9}}}},
    "unknown field": {"action": ["A"]},
}  # fmt: skip


CHOICES, MANY = "/bandits/arms/choices", "/bandits/arms/decide-many"
ARM = "/bandits/arms"
REWARD_MANY, GIVEN = "/bandits/arms/reward-many", {"id": "d2", "value": 1}
NEW = {"name": "new", "actions": ["A", "B"]}
WRONG = {
    **{name: (REWARD, body, 400) for name, body in WRONG_JSON.items()},
    **{name: ("/bandits", {**NEW, **change}, 400) for name, change in WRONG_CREATE.items()},
    "unknown context": (DECIDE, {"context": {"country": "fr", "age": 3}}, 400),
    "missing context": (DECIDE, {}, 400),
    "choice there already": (CHOICES, {"verb": "add", "choice": "A"}, 409),
    "unknown version": ("/bandits/arms/publish", {"version": 9}, 404),
    "nothing to go back to": ("/bandits/arms/roll-back", {}, 409),
    "no scope": ("/keys", {"scopes": []}, 400),
    **{
        f"expires {one}": ("/keys", {"scopes": ["admin"], "expires": one}, 400)
        for one in ("2001-01-01", "tomorrow", "")
    },
    "bandit there already": ("/bandits", ARMS, 409),
    "too many": (MANY, {"requests": [CONTEXT] * 1001}, 400),
    "one of many": (MANY, {"requests": [CONTEXT, {"eligible": ["Z"]}]}, 400),
    "too many rewards": (REWARD_MANY, {"rewards": [GIVEN] * 1001}, 400),
    "unknown bandit": ("/bandits/none/decide", {}, 404),
    "guard rail that leaves nothing": (ARM, {"guard_rails": {"minimum": 0.6}}, 400),
    "half a guard rail": (ARM, {"guard_rails": {"control": "A"}}, 400),
    "setting out of its range": (ARM, {"reward_wait": -7}, 400),
    "setting that cannot be changed": (ARM, {"actions": ["A"]}, 400),
    "unknown setting": (ARM, {"colour": "red"}, 400),
    "no change": (ARM, {}, 400),
}


@pytest.mark.parametrize(("path", "body", "status"), WRONG.values(), ids=WRONG)
def test_a_wrong_request_is_refused(refused, path, body, status):
    sent = body if isinstance(body, bytes) else json.dumps(body)
    refused(status, "PATCH" if path == ARM else "POST", path, content=sent, headers=JSON)


PATHS = {
    "/bandits/..%2F..%2Fetc%2Fpasswd/export": 404,
    "/bandits/%2e%2e/export": 400,
    "/bandits/arms%00/export": 400,
    "/bandits/%F0%9F%98%80": 400,
    "/bandits/%FF": 400,
    "/bandits/arms'--": 400,
    "/bandits/%3Cscript%3E": 400,
    f"/bandits/{'a' * 5000}": 400,
    "//bandits": 404,
    "/static/../../etc/passwd": 404,
}


@pytest.mark.parametrize(("path", "status"), PATHS.items(), ids=list(PATHS))
def test_a_path_that_leads_nowhere_is_refused(refused, path, status):
    refused(status, "GET", f"http://127.0.0.1{path}")


METHODS = [("GET", DECIDE), ("PUT", "/bandits/arms"), ("TRACE", "/metrics"), ("NONE", "/bandits")]


@pytest.mark.parametrize(("method", "path"), METHODS)
def test_a_wrong_method_is_refused_and_the_right_ones_are_named(refused, method, path):
    assert refused(405, method, path).headers["allow"]


def test_every_operation_refuses_query_parameters(refused):
    for one in OPERATIONS:
        if not one.hidden:
            refused(400, one.method, f"{one.path.format(name='arms', id='none')}?limt=5")


@pytest.mark.parametrize("kind", [None, "", "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_of_another_type_is_refused(refused, kind):
    headers = {} if kind is None else {"content-type": kind}
    refused(415, "POST", REWARD, content=b'{"id": "d2", "value": 1}', headers=headers)


@pytest.mark.parametrize("length", ["1000001", "9" * 20, "9" * 5000])
def test_a_body_that_is_or_says_it_is_too_long_is_refused(refused, length):
    refused(413, "POST", REWARD, content=b" " * 1_000_001, headers=JSON)
    refused(413, "POST", REWARD, content=b"{}", headers={**JSON, "content-length": length})


PRINTABLE = [SQL, SCRIPT, EMOJI, "../../etc/passwd", "{{7*7}}", "%s%n", "$(id)"]


def test_hostile_names_of_choices_come_back_as_they_were_given(http):
    body = {"name": "hostile", "actions": {SQL: PRINTABLE}, "context": {SCRIPT: PRINTABLE}}
    body["policy"] = "linucb"
    shown = http.post("/bandits", json=body)
    assert shown.status_code == 201, shown.text
    assert [one["choice"] for one in shown.json()["actions"][SQL]] == PRINTABLE
    for text in PRINTABLE:
        request = {"context": {SCRIPT: text}, "eligible": {SQL: [text]}}
        answer = http.post("/bandits/hostile/decide", json=request)
        assert answer.json()["action"] == {SQL: text}
    assert http.get("/bandits/hostile/export").status_code == 200


FILE_POLICIES = [
    "FILE:Y",
    {"kind": "FILE:Y"},
    {"kind": "reward-conditioned", "estimator": "FILE:Y"},
    {"kind": "reward-conditioned", "estimator": {"kind": "FILE:Y"}},
    {"kind": "reward-conditioned", "strategy": {"kind": "FILE:Y"}},
    {"kind": "gridded", "policy": {"kind": "gridded", "policy": {"kind": "FILE:Y"}}},
    {"kind": "gridded", "policy": ["FILE:Y", {"kind": "FILE:Y"}]},
    "FILE:Y,x=1@greedy",
    {"kind": "gridded", "policy": "FILE:Y,x=1@greedy"},
    "trees-greedy,regressor=x.Y",
]


@pytest.mark.parametrize("policy", FILE_POLICIES, ids=json.dumps)
def test_a_policy_from_a_file_is_refused_and_not_imported(refused, tmp_path, policy):
    file = tmp_path / "x.py"
    file.write_text(f"from pathlib import Path\nPath({str(tmp_path)!r}, 'ran').touch()\n")
    body = json.dumps({"name": "new", "actions": ["A"], "policy": policy})
    answer = refused(400, "POST", "/bandits", content=body.replace("FILE", str(file)), headers=JSON)
    assert answer.json()["code"] == "invalid-input"
    assert not (tmp_path / "ran").exists()
    assert not any(str(file).replace(".", "_") in name for name in sys.modules)


def test_many_decisions_take_as_much_of_the_rate_and_no_more_are_made(serving, store):
    http = serving(store, rate=1.0)
    http.post("/bandits", json={"name": "arms", "actions": ["A"]})
    assert http.post(MANY, json={"requests": [{}] * 300}).status_code == 200
    for path, body in ((MANY, {"requests": [{}]}), (DECIDE, {})):
        assert http.post(path, json=body).status_code == 429
    assert len(contents(store)["decision"]) == 300


def test_names_that_do_not_exist_share_a_rate_and_are_told_how_long_to_wait(serving, store):
    http = serving(store, rate=0.1)
    answers = [http.get(f"/bandits/none-{number}") for number in range(2)]
    assert [answer.status_code for answer in answers] == [404, 429]
    assert int(answers[1].headers["retry-after"]) == 10


def test_two_who_create_the_same_bandit_do_not_both_succeed(serving, store):
    http = serving(store)
    bodies = [{"name": "same", "actions": ["A"], "policy": one} for one in ("random", "ucb1")]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda body: http.post("/bandits", json=body), bodies * 4))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    (made,) = [answer.json() for answer in answers if answer.status_code == 201]
    assert http.get("/bandits/same").json()["policy"] == made["policy"]
    assert len(contents(store)["bandit"]) == 1


def nested(path, value):
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("policy.strategy.depth", LIMITS["depth"]),
        ("policy.policy.estimator.training.steps", LIMITS["steps"]),
        ("policy.estimator.parameters.n_estimators", OTHERS),
        ("policy.a_parameter_of_a_plugin", OTHERS),
        ("rewards.bin_edges", LIMITS["bin_edges"]),
    ],
)
def test_a_number_up_to_the_limit_is_allowed_and_a_larger_one_is_not(path, limit):
    for allowed in (limit, -limit, 0.5, True, "fitted", None):
        check_parameters(nested(path, allowed))
    for refused in (limit + 1, -limit - 1, [0, 2 * limit], {"x": 10**30}):
        with raises_code("invalid-input"):
            check_parameters(nested(path, refused))


@pytest.mark.parametrize(
    "policy",
    [
        "posterior-submax,draws=1e6",
        "rcp-cvae-submax,estimator.hidden=5000@greedy",
        {"kind": "tempered", "policy": "posterior-submax,draws=1e6"},
    ],
    ids=json.dumps,
)
def test_a_number_in_a_text_has_the_same_limit(refused, policy):
    body = {"name": "new", "actions": ["A"], "policy": policy}
    assert refused(400, "POST", "/bandits", json=body).json()["code"] == "invalid-input"


def numeric_fields(cls, seen):
    """The names of all fields with numbers, also those of dataclasses within."""
    if cls in seen:
        return
    seen.add(cls)
    for name, hint in typing.get_type_hints(cls).items():
        if name not in {field.name for field in dataclasses.fields(cls)}:
            continue
        for part in parts(hint):
            if part in (int, float):
                yield name
            elif dataclasses.is_dataclass(part) and isinstance(part, type):
                yield from numeric_fields(part, seen)


def parts(hint):
    """All types of a union or a collection, however deep."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, UnionType, tuple, list):
        return [one for each in typing.get_args(hint) for one in parts(each)]
    return [hint]


def test_every_number_that_can_be_declared_has_a_limit():
    classes = [
        *(
            registry.find(name)
            for registry in (POLICIES, ESTIMATORS, STRATEGIES)
            for name in registry.homes
        ),
        *SCALES.values(),
    ]
    names = {name for cls in classes for name in numeric_fields(cls, set())}
    assert len(names) > 30
    assert names <= {*FREE, *LIMITS}
