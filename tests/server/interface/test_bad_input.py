import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from submax.live.store.memory_store import MemoryStore

JSON = {"content-type": "application/json"}
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
def refused(http, shared_store, counted):
    """Send something that is answered with a status and a sentence, counted, and no more."""

    def events():
        return {stream: shared_store.read(stream) for stream in shared_store.streams()}

    def refused(status, method, path, **options):
        before, count = events(), counted(status)
        answer = http.request(method, path, **options)
        assert answer.status_code == status, answer.text
        assert answer.headers["content-type"] == "application/json"
        told = answer.json()
        assert list(told) == ["error", "code"]
        assert re.fullmatch("[a-z]+(-[a-z]+)*", told["code"])
        assert 0 < len(told["error"]) <= 500
        assert "\n" not in told["error"]
        assert "Traceback" not in told["error"]
        assert events() == before
        assert counted(status) == count + 1
        return answer

    return refused


WRONG_JSON = {
    "empty": b"",
    "blank": b"  \n",
    "cut": b'{"id": "d2"',
    "more": b'{"id": "d2", "value": 1} {}',
    "list": b'[{"id": "d2", "value": 1}]',
    "text": b'"d2"',
    "number": b"1",
    "null": b"null",
    "single quotes": b"{'id': 'd2', 'value': 1}",
    "comma": b'{"id": "d2", "value": 1,}',
    "comment": b'{"id": "d2", "value": 1} // x',
    "mark": b'\xef\xbb\xbf{"id": "d2", "value": 1}',
    "utf-16": '{"id": "d2", "value": 1}'.encode("utf-16"),
    "no utf-8": b'{"id": "d2\xff", "value": 1}',
    "no utf-8 in a key": b'{"id\xff": "d2", "value": 1}',
    "surrogate": b'{"id": "d2\\ud800", "value": 1}',
    "surrogate in utf-8": b'{"id": "d2\xed\xa0\x80", "value": 1}',
    "nul": b'{"id": "d2\\u0000", "value": 1}',
    "nul as it is": b'{"id": "d2\x00", "value": 1}',
    "newline": b'{"id": "d2\\n", "value": 1}',
    "emoji": '{"id": "\N{GRINNING FACE}", "value": 1}'.encode(),
    "space": b'{"id": "d 2", "value": 1}',
    "long id": json.dumps({"id": "d" * 129, "value": 1}).encode(),
    "no id": b'{"value": 1}',
    "empty id": b'{"id": "", "value": 1}',
    "id of another type": b'{"id": 2, "value": 1}',
    "no value": b'{"id": "d2"}',
    "unknown field": b'{"id": "d2", "value": 1, "valeu": 1}',
    "same key twice": b'{"id": "d2", "value": 0, "value": 1}',
    "nan": b'{"id": "d2", "value": NaN}',
    "infinity": b'{"id": "d2", "value": Infinity}',
    "minus infinity": b'{"id": "d2", "value": -Infinity}',
    "beyond floats": b'{"id": "d2", "value": 1e400}',
    "huge": json.dumps({"id": "d2", "value": HUGE}).encode(),
    "huge still": b'{"id": "d2", "value": ' + b"9" * 10_000 + b"}",
    "out of the scale": b'{"id": "d2", "value": 2}',
    "null value": b'{"id": "d2", "value": null}',
    "text value": b'{"id": "d2", "value": "1"}',
    "true value": b'{"id": "d2", "value": true}',
    "list value": b'{"id": "d2", "value": [1]}',
    "deep": b'{"id": "d2", "value": ' + b"[" * 30 + b"]" * 30 + b"}",
    "very deep": b"[" * 400_000 + b"]" * 400_000,
    "deep and open": b'{"a":' * 100_000,
    "deep beside brackets in a text": b'{"id": "]]]]]]]]]]]]\\"]]]]", "value": ' + b"[" * 30 + b"}",
}


@pytest.mark.parametrize("body", WRONG_JSON.values(), ids=WRONG_JSON)
def test_a_body_that_does_not_fit_is_refused(refused, body):
    refused(400, "POST", REWARD, content=body, headers=JSON)


def test_brackets_within_texts_are_not_depth(http):
    body = {"id": "d2", "value": 1, "key": "[" * 100}
    assert http.post(REWARD, json=body).status_code == 200


WRONG_DECIDE = {
    "unknown field": {**CONTEXT, "contex": {}},
    "unknown context": {"context": {"country": "fr", "age": 3}},
    "unknown category": {"context": {"country": "us"}},
    "missing context": {},
    "number for a category": {"context": {"country": 1}},
    "list for a value": {"context": {"country": ["fr"]}},
    "table for a value": {"context": {"country": {"a": 1}}},
    "list for the context": {"context": ["fr"]},
    "unknown choice": {**CONTEXT, "eligible": ["Z"]},
    "no choice": {**CONTEXT, "eligible": []},
    "slot of arms": {**CONTEXT, "eligible": {"title": ["A"]}},
    "number for a choice": {**CONTEXT, "eligible": [1]},
    "text for choices": {**CONTEXT, "eligible": "A"},
    "word for activate": {**CONTEXT, "activate": "yes"},
    "number for activate": {**CONTEXT, "activate": 0},
}


@pytest.mark.parametrize("body", WRONG_DECIDE.values(), ids=WRONG_DECIDE)
def test_a_wrong_decision_is_refused(refused, body):
    refused(400, "POST", DECIDE, json=body)


WRONG_CREATE = {
    "no actions": {"actions": None},
    "empty actions": {"actions": []},
    "no slots": {"actions": {}},
    "slot without choices": {"actions": {"title": []}},
    "same choice twice": {"actions": ["A", "A"]},
    "number for a choice": {"actions": [1, 2]},
    "empty name": {"actions": [""]},
    "long name": {"actions": ["a" * 201]},
    "control character": {"actions": ["a\x07"]},
    "wrong interval": {"actions": {"price": [2, 1]}},
    "infinite interval": {"actions": {"price": [0, 1e31]}, "policy": "no-such"},
    "too many choices": {"actions": [str(number) for number in range(10_001)]},
    "too many choices of a slot": {"actions": {"s": [str(number) for number in range(10_001)]}},
    "too many slots": {"actions": {str(number): ["A"] for number in range(65)}},
    "too many fields": {"context": {str(number): "number" for number in range(1001)}},
    "too many categories": {"context": {"c": [str(number) for number in range(10_001)]}},
    "unknown kind of field": {"context": {"age": "nummer"}},
    "unknown key of a field": {"context": {"age": {"defautl": 1}}},
    "default of another kind": {"context": {"c": {"values": ["a"], "default": "b"}}},
    "name with capitals": {"name": "New"},
    "name with a slash": {"name": "../../etc/passwd"},
    "empty bandit": {"name": ""},
    "long bandit": {"name": "n" * 65},
    "newline behind the name": {"name": "new\n"},
    "unknown policy": {"policy": "thomson"},
    "unknown kind": {"policy": {"kind": "thomson"}},
    "policy without a kind": {"policy": {}},
    "kind of another type": {"policy": {"kind": 1}},
    "unknown parameter": {"policy": {"kind": "epsilon-greedy", "epsilom": 0.1}},
    "wrong parameter": {"policy": {"kind": "epsilon-greedy", "epsilon": 2}},
    "huge parameter": {"policy": {"kind": "epsilon-greedy", "epsilon": HUGE}},
    "policy as an object": {"policy": {"kind": "own"}},
    "policy as a list": {"policy": ["random"]},
    "policy for another problem": {"policy": "thompson-1-9", "rewards": "continuous"},
    "unknown rewards": {"rewards": "binar"},
    "unknown key of rewards": {"rewards": {"kind": "binary", "low": 0}},
    "unknown combination": {"combine": "mean"},
    "sum of binary rewards": {"combine": "sum"},
    "no reward after, with a wait": {"reward_wait": 1, "no_reward_after": 1},
    "no reward after nothing": {"reward_wait": 0, "no_reward_after": 0},
    "negative wait": {"reward_wait": -1},
    "endless wait": {"reward_wait": 1e300},
    "default out of the scale": {"default_reward": 0.5},
    "unknown guard rail": {"guard_rails": {"minimun": 0.1}},
    "minimum of one": {"guard_rails": {"minimum": 1.0}},
    "control without a share": {"guard_rails": {"control": "A"}},
    "unknown control": {"guard_rails": {"control": "Z", "control_share": 0.5}},
    "huge burn-in": {"guard_rails": {"burn_in": HUGE}},
    "negative seed": {"seed": -1},
    "seed beyond": {"seed": 2**63},
    "half a row": {"refit_rows": 0.5},
    "one version": {"keep_versions": 1},
    "unknown field": {"action": ["A"]},
}


@pytest.mark.parametrize("change", WRONG_CREATE.values(), ids=WRONG_CREATE)
def test_a_wrong_declaration_is_refused(refused, http, change):
    body = json.dumps({"name": "new", "actions": ["A", "B"], **change})
    refused(400, "POST", "/bandits", content=body, headers=JSON)
    assert http.get("/bandits").json() == {"bandits": ["arms"]}


WRONG_OTHERS = {
    "unknown verb": ("/bandits/arms/choices", {"verb": "remove", "choice": "A"}, 400),
    "long verb": ("/bandits/arms/choices", {"verb": "x" * 100_000, "choice": "A"}, 400),
    "unknown choice": ("/bandits/arms/choices", {"verb": "pause", "choice": "Z"}, 400),
    "unknown slot": ("/bandits/arms/choices", {"verb": "add", "choice": "D", "slot": "t"}, 400),
    "choice there already": ("/bandits/arms/choices", {"verb": "add", "choice": "A"}, 409),
    "unprintable choice": ("/bandits/arms/choices", {"verb": "add", "choice": NUL}, 400),
    "unknown version": ("/bandits/arms/publish", {"version": 9}, 404),
    "negative version": ("/bandits/arms/publish", {"version": -1}, 400),
    "half a version": ("/bandits/arms/publish", {"version": 0.5}, 400),
    "huge version": ("/bandits/arms/publish", {"version": 2**63}, 400),
    "nothing to go back to": ("/bandits/arms/roll-back", None, 409),
    "unknown decision": ("/bandits/arms/activate", {"id": "d9"}, 404),
    "conflict": (REWARD, {"id": "d1", "value": 0.0}, 409),
    "no scope": ("/keys", {"scopes": []}, 400),
    "unknown scope": ("/keys", {"scopes": ["root"]}, 400),
    "no bandits": ("/keys", {"scopes": ["read"], "bandits": []}, 400),
    "wrong bandit": ("/keys", {"scopes": ["read"], "bandits": ["../x"]}, 400),
    "zero rate": ("/keys", {"scopes": ["read"], "rate": 0}, 400),
    "bandit there already": ("/bandits", ARMS, 409),
    "no decisions": ("/bandits/arms/decide-many", {"requests": []}, 400),
    "too many": ("/bandits/arms/decide-many", {"requests": [CONTEXT] * 1001}, 400),
    "no rewards": ("/bandits/arms/reward-many", {"rewards": []}, 400),
    "too many rewards": (
        "/bandits/arms/reward-many",
        {"rewards": [{"id": str(number), "value": 1} for number in range(1001)]},
        400,
    ),
    "one of many": (
        "/bandits/arms/reward-many",
        {"rewards": [{"id": "d2", "value": 1}, {"id": "d3", "value": 7}]},
        400,
    ),
    "unknown bandit": ("/bandits/none/decide", {}, 404),
    "unknown bandit to reward": ("/bandits/none/reward", {"id": "d1", "value": 1}, 404),
    "impossible bandit": ("/bandits/NONE/decide", {}, 400),
}


@pytest.mark.parametrize(("path", "body", "status"), WRONG_OTHERS.values(), ids=WRONG_OTHERS)
def test_a_wrong_request_is_refused(refused, path, body, status):
    refused(status, "POST", path, **({} if body is None else {"json": body}))


PATHS = {
    "/bandits/..%2F..": 404,
    "/bandits/..%2F..%2Fetc%2Fpasswd/export": 404,
    "/bandits/%2e%2e": 400,
    "/bandits/%2e%2e/export": 400,
    "/bandits/arms%00/export": 400,
    "/bandits/arms%0a/export": 400,
    "/bandits/%F0%9F%98%80": 400,
    "/bandits/%FF": 400,
    "/bandits/arms'--": 400,
    "/bandits/%3Cscript%3E": 400,
    f"/bandits/{'a' * 5000}": 400,
    "/bandits/none": 404,
    "/bandits/arms/none": 404,
    "/bandits/": 404,
    "//bandits": 404,
    "/static/../../etc/passwd": 404,
    "/docs": 404,
}


@pytest.mark.parametrize(("path", "status"), PATHS.items(), ids=list(PATHS))
def test_a_path_that_leads_nowhere_is_refused(refused, path, status):
    refused(status, "GET", f"http://127.0.0.1{path}")


@pytest.mark.parametrize("number", ["none", "..%2F", "%00", "'--", "%F0%9F%98%80", "a" * 5000])
def test_a_key_that_does_not_exist_is_not_revoked(refused, number):
    refused(404, "DELETE", f"/keys/{number}")


METHODS = [
    ("GET", DECIDE),
    ("PUT", DECIDE),
    ("PUT", "/bandits/arms"),
    ("PATCH", "/bandits"),
    ("POST", "/healthz"),
    ("OPTIONS", DECIDE),
    ("TRACE", "/metrics"),
    ("NONE", "/bandits"),
]


@pytest.mark.parametrize(("method", "path"), METHODS)
def test_a_wrong_method_is_refused_and_the_right_ones_are_named(refused, method, path):
    assert refused(405, method, path).headers["allow"]


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]
)
def test_a_body_of_another_type_is_refused(refused, kind):
    headers = {} if kind is None else {"content-type": kind}
    refused(415, "POST", REWARD, content=b'{"id": "d2", "value": 1}', headers=headers)


def test_the_type_may_name_its_encoding(http):
    headers = {"content-type": "Application/JSON; charset=utf-8"}
    answer = http.post(REWARD, content=b'{"id": "d2", "value": 1}', headers=headers)
    assert answer.status_code == 200


def test_a_body_that_is_too_long_is_refused(refused):
    refused(413, "POST", REWARD, content=b" " * 1_000_001, headers=JSON)


@pytest.mark.parametrize("length", ["1000001", "9" * 20, "9" * 5000])
def test_a_body_that_says_it_is_too_long_is_not_read(refused, length):
    headers = {**JSON, "content-length": length}
    refused(413, "POST", REWARD, content=b"{}", headers=headers)


def test_a_body_of_unknown_length_is_read_up_to_the_limit(refused):
    sent = []

    async def parts():
        for _ in range(1000):
            sent.append(100_000)
            yield b" " * 100_000

    refused(413, "POST", REWARD, content=parts(), headers=JSON)
    assert len(sent) <= 1000


def test_a_body_at_the_limit_is_read(http):
    body = b'{"id": "d2", "value": 1}'.ljust(1_000_000)
    assert http.post(REWARD, content=body, headers=JSON).status_code == 200


HOSTILE = [SQL, SCRIPT, NUL, EMOJI, "../../etc/passwd", "{{7*7}}", "%s%n", "$(id)", "a" * 10_000]
FIELDS = {
    "context": (DECIDE, lambda text: {"context": {"country": text}}),
    "field": (DECIDE, lambda text: {"context": {"country": "fr", text: "x"}}),
    "eligible": (DECIDE, lambda text: {**CONTEXT, "eligible": [text]}),
    "slot": (DECIDE, lambda text: {**CONTEXT, "eligible": {text: ["A"]}}),
    "name": ("/bandits", lambda text: {"name": text, "actions": ["A"]}),
    "policy": ("/bandits", lambda text: {"name": "new", "actions": ["A"], "policy": text}),
    "kind": ("/bandits", lambda text: {"name": "n", "actions": ["A"], "policy": {"kind": text}}),
    "rewards": ("/bandits", lambda text: {"name": "new", "actions": ["A"], "rewards": text}),
    "combine": ("/bandits", lambda text: {"name": "new", "actions": ["A"], "combine": text}),
    "kind of field": (
        "/bandits",
        lambda text: {"name": "n", "actions": ["A"], "context": {"c": text}},
    ),
    "verb": ("/bandits/arms/choices", lambda text: {"verb": text, "choice": "A"}),
    "choice": ("/bandits/arms/choices", lambda text: {"verb": "pause", "choice": text}),
    "slot of a choice": (
        "/bandits/arms/choices",
        lambda text: {"verb": "add", "choice": "D", "slot": text},
    ),
    "scope": ("/keys", lambda text: {"scopes": [text]}),
    "bandit of a key": ("/keys", lambda text: {"scopes": ["read"], "bandits": [text]}),
    "unknown": (REWARD, lambda text: {"id": "d2", "value": 1, text: 1}),
}


@pytest.mark.parametrize("field", list(FIELDS))
def test_hostile_texts_are_refused_where_a_known_name_is_needed(refused, field):
    path, body = FIELDS[field]
    for text in HOSTILE:
        refused(400, "POST", path, json=body(text))


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


@pytest.mark.parametrize("text", ["';DROP/**/TABLE/**/events;--", "<script>", "../..", "%00", "\\"])
def test_hostile_ids_come_back_as_they_were_given(http, text):
    assert http.post(DECIDE, json={"id": text, **CONTEXT}).json()["id"] == text
    answer = http.post(REWARD, json={"id": text, "value": 1, "key": text})
    assert answer.json() == {"id": text, "status": "accepted", "repeated": False}


FILE_POLICIES = [
    "FILE:Y",
    {"kind": "FILE:Y"},
    {"kind": "reward-conditioned", "estimator": "FILE:Y"},
    {"kind": "reward-conditioned", "estimator": {"kind": "FILE:Y"}},
    {"kind": "reward-conditioned", "strategy": {"kind": "FILE:Y"}},
    {"kind": "gridded", "policy": {"kind": "gridded", "policy": {"kind": "FILE:Y"}}},
    {"kind": "gridded", "policy": ["FILE:Y", {"kind": "FILE:Y"}]},
]


@pytest.mark.parametrize("policy", FILE_POLICIES, ids=json.dumps)
def test_a_policy_from_a_file_is_refused_and_not_imported(refused, tmp_path, policy):
    file = tmp_path / "x.py"
    file.write_text(f"from pathlib import Path\nPath({str(tmp_path)!r}, 'ran').touch()\n")
    body = json.dumps({"name": "new", "actions": ["A"], "policy": policy})
    answer = refused(400, "POST", "/bandits", content=body.replace("FILE", str(file)), headers=JSON)
    assert "server's machine" in answer.json()["error"]
    assert not (tmp_path / "ran").exists()
    assert not any(str(file).replace(".", "_") in name for name in sys.modules)


def test_too_many_requests_are_told_to_wait(serving, store, events):
    http = serving(store, rate=5.0)
    assert http.post("/bandits", json={"name": "arms", "actions": ["A"]}).status_code == 201
    answers = [http.post(DECIDE, json={}) for _ in range(30)]
    refused = [answer for answer in answers if answer.status_code == 429]
    made = [answer for answer in answers if answer.status_code == 200]
    assert len(made) >= 5
    assert refused
    assert len(made) + len(refused) == 30
    assert int(refused[0].headers["retry-after"]) >= 1
    assert "5 requests a second" in refused[0].json()["error"]
    assert len(events()["arms/log"]) == len(made)


def test_many_decisions_take_as_much_of_the_rate(serving, store):
    http = serving(store, rate=50.0)
    http.post("/bandits", json={"name": "arms", "actions": ["A"]})
    body = {"requests": [{}] * 50}
    assert http.post("/bandits/arms/decide-many", json=body).status_code == 200
    assert http.post("/bandits/arms/decide-many", json=body).status_code == 429


def test_a_slow_rate_says_how_long_to_wait(serving, store):
    http = serving(store, rate=0.1)
    http.get("/bandits")
    assert int(http.get("/bandits").headers["retry-after"]) == 10


def test_names_that_do_not_exist_do_not_fill_the_memory(serving):
    http = serving(MemoryStore(), rate=5.0)
    statuses = [http.get(f"/bandits/none-{number}").status_code for number in range(30)]
    assert statuses.count(429) > 0


def test_two_who_create_the_same_bandit_do_not_both_succeed(serving, store, events):
    http = serving(store)
    bodies = [{"name": "same", "actions": ["A"], "policy": one} for one in ("random", "ucb1")]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda body: http.post("/bandits", json=body), bodies * 4))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    (made,) = [answer.json() for answer in answers if answer.status_code == 201]
    assert http.get("/bandits/same").json()["policy"] == made["policy"]
    assert len(events()["same/settings"]) == 1
