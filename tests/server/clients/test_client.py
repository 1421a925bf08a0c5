import math
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import numpy as np
import pytest
from refusals import raises_code

import submax.web.server.client.messages.attempts
from submax.client import Client
from submax.core.errors import (
    ConflictError,
    ForbiddenError,
    InputError,
    NotFoundError,
    StoreError,
)

DECISION = {"id": "d1", "action": "A", "propensity": 0.5, "version": 0}
RECEIPT = {"id": "d1", "status": "accepted"}


BUSY = {"error": "try again"}


@pytest.mark.parametrize("failure", [(503, BUSY), (429, BUSY), (0, b""), (503, b"<html>")])
@pytest.mark.parametrize("times", [1, 3])
def test_a_request_that_fails_is_sent_again_with_the_same_id(stub, client, failure, times):
    stub.answers = [failure] * times + [(200, DECISION)]
    assert client.decide().action == "A"
    bodies = [body for _, body, _ in stub.seen]
    assert len(bodies) == times + 1
    assert all(body == bodies[0] for body in bodies)
    assert len(bodies[0]["id"]) == 36


@pytest.mark.parametrize("failure", [(503, BUSY), (429, BUSY), (0, b"")])
def test_it_gives_up_and_says_after_how_many_attempts(stub, client, failure):
    stub.answers = [failure]
    with raises_code("store-unavailable"):
        client.reward("d1", 1.0)
    assert len(stub.seen) == 4


def test_a_server_that_is_not_there_is_tried_as_often(monkeypatch, kind):
    monkeypatch.setattr(submax.web.server.client.messages.attempts, "FIRST_PAUSE", 0.001)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with (
            kind(address, "page", attempts=3) as client,
            raises_code("store-unavailable"),
        ):
            client.decide()


def test_a_server_that_does_not_answer_is_given_up_on(kind):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            kind(address, "page", attempts=2, timeout=0.1) as client,
            raises_code("store-unavailable"),
        ):
            client.decide()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, NotFoundError),
        (409, ConflictError),
        (400, InputError),
        (401, ForbiddenError),
        (403, ForbiddenError),
        (413, InputError),
        (500, StoreError),
        (501, StoreError),
    ],
)
def test_errors_are_what_they_are_without_a_server_and_not_tried_again(stub, client, status, error):
    stub.answers = [(status, {"error": "the sentence of the server"})]
    with pytest.raises(error, match="the sentence of the server") as raised:
        client.decide()
    assert type(raised.value) is error
    assert len(stub.seen) == 1


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"id": 1}', b"\xff"])
def test_an_answer_of_another_server_is_said_so(stub, client, answer):
    stub.answers = [(200, answer)]
    with raises_code("store-unavailable"):
        client.decide()


def test_a_redirection_is_not_followed(stub, client):
    stub.answers = [(302, b"")]
    with pytest.raises(InputError):
        client.decide()


def test_the_key_is_sent(stub, kind):
    with kind(stub.address, "page", key="submax.a.b") as client:
        client.decide()
    assert stub.seen[0][2]["Authorization"] == "Bearer submax.a.b"


def test_an_address_may_have_a_path(stub, kind):
    with kind(f"{stub.address}/below/", "page") as client:
        client.decide()
    assert stub.seen[0][0] == "/below/bandits/page/decide"


def test_many_decisions_each_have_an_id_before_they_are_sent(stub, client):
    stub.answers = [(503, BUSY), (200, {"decisions": [DECISION, DECISION]})]
    assert len(client.decide_many([{"context": {"age": 1}}, {"id": "mine"}])) == 2
    first, second = (body["requests"] for _, body, _ in stub.seen)
    assert first == second
    assert first[1]["id"] == "mine"
    assert len(first[0]["id"]) == 36


def test_many_rewards_and_activation(stub, client):
    stub.answers = [(200, {"receipts": [RECEIPT]}), (200, RECEIPT)]
    assert client.reward_many([{"id": "d1", "value": 1.0}])[0].status == "accepted"
    assert client.activate("d1").id == "d1"
    assert [path.rpartition("/")[2] for path, _, _ in stub.seen] == ["reward-many", "activate"]


def test_threads_have_connections_of_their_own(stub):
    client = Client(stub.address, "page")

    def ask(number):
        found = [client.decide(id=f"{number}-{one}") for one in range(20)]
        client.close()
        return len(found)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [20] * 4
    assert len({body["id"] for _, body, _ in stub.seen}) == 80


def test_numbers_of_numpy_are_sent_as_numbers(stub, client):
    client.decide({"age": np.float32(0.5), "visits": np.int64(3)})
    assert stub.seen[0][1]["context"] == {"age": 0.5, "visits": 3}


@pytest.mark.parametrize("value", [math.nan, math.inf, np.float64("nan"), np.float32("inf")])
def test_a_number_that_is_not_finite_is_refused_and_not_sent(stub, client, value):
    with raises_code("invalid-input"):
        client.decide({"age": value})
    with raises_code("invalid-input"):
        client.reward("d1", value)
    with raises_code("invalid-input"):
        client.reward_many([{"id": "d1", "value": value}])
    assert stub.seen == []


@pytest.mark.parametrize("value", [object(), "\ud800", object])
def test_what_is_no_json_is_refused_and_not_sent(stub, client, value):
    with raises_code("invalid-input"):
        client.decide({"age": value})
    assert stub.seen == []


def test_an_empty_id_is_sent_as_it_is(stub, client):
    client.decide(id="")
    assert stub.seen[0][1]["id"] == ""


@pytest.mark.parametrize(
    ("address", "options", "words"),
    [
        ("127.0.0.1:8000", {}, "like http://127.0.0.1:8000"),
        ("ftp://127.0.0.1", {}, "like http://127.0.0.1:8000"),
        ("http://", {}, "like http://127.0.0.1:8000"),
        ("http://a:99999", {}, "like http://127.0.0.1:8000"),
        ("http://a:b", {}, "like http://127.0.0.1:8000"),
        ("http://[::1", {}, "like http://127.0.0.1:8000"),
        ("http://a", {"attempts": 0}, "attempts"),
        ("http://a", {"timeout": 0}, "timeout"),
        ("http://a", {"deadline": 0}, "deadline"),
        ("http://a", {"gather": -1}, "gather"),
        ("http://a", {"connections": 0}, "connections"),
        ("http://a", {"key": "a\nb"}, "give the whole text"),
        ("http://a", {"key": "é"}, "give the whole text"),
    ],
)
def test_a_client_that_cannot_work_is_not_made(kind, address, options, words):
    with raises_code("invalid-input"):
        kind(address, "page", **options)


def test_the_name_of_a_bandit_is_checked():
    with raises_code("invalid-input"):
        Client("http://a", "../x")


def test_connections_are_used_again(stub, client):
    for _ in range(5):
        client.decide()
    assert stub.connections == 1


def test_the_deadline_ends_all_attempts(stub, kind):
    stub.answers = [(503, BUSY)]
    with (
        kind(stub.address, "page", attempts=10**6, deadline=0.05) as client,
        raises_code("deadline") as raised,
    ):
        client.decide()
    assert raised.value.code == "deadline"


def test_a_bandit_can_be_shown(stub, client):
    stub.answers = [(200, {"name": "page"})]
    assert client.show() == {"name": "page"}


def test_clients_need_neither_numpy_nor_the_server():
    script = (
        "import sys, submax; submax.Client, submax.AsyncClient;"
        "print({'numpy', 'starlette', 'uvicorn', 'httpx'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


PARTS = [b'{"id": "d1", "action"', b': "A", "propensity": 0.5, "version": 0}']
RAW_ANSWERS = {
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    + b"".join(b"%X;a=b\r\n%b\r\n" % (len(part), part) for part in PARTS)
    + b"0\r\nTrailer: x\r\n\r\n",
    "continue": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 59\r\n\r\n"
    b'{"id":"d1","action":"A","propensity":0.5,"version":0      }',
    "end of connection": b"HTTP/1.0 200 OK\r\n\r\n"
    b'{"id":"d1","action":"A","propensity":0.5,"version":0}',
}
BROKEN_ANSWERS = {
    "no http": b"\x00\xff\r\n\r\n",
    "wrong length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    "wrong chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "cut off": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    "nothing": b"",
}


@pytest.fixture
def raw():
    """A server whose every answer is the given bytes, after which it hangs up."""
    listening = socket.create_server(("127.0.0.1", 0))
    answers = []

    def run():
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                if connection.recv(65_536):
                    connection.sendall(answers[-1])

    thread = Thread(target=run)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}", answers
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join()


@pytest.mark.parametrize("form", RAW_ANSWERS)
def test_all_forms_of_answers_are_read(raw, kind, form):
    address, answers = raw
    answers.append(RAW_ANSWERS[form])
    with kind(address, "page") as client:
        assert client.decide().action == "A"


@pytest.mark.parametrize("form", BROKEN_ANSWERS)
def test_an_answer_that_is_broken_is_not_taken_for_one(raw, kind, form):
    address, answers = raw
    answers.append(BROKEN_ANSWERS[form])
    with kind(address, "page", attempts=2, timeout=5) as client, pytest.raises(StoreError):
        client.decide()


def test_a_connection_that_the_server_has_closed_is_not_used_again(raw, kind):
    address, answers = raw
    answers.append(RAW_ANSWERS["continue"])
    # The server hangs up after each answer, and a single attempt suffices.
    with kind(address, "page", attempts=1) as client:
        assert client.decide().action == "A"
        time.sleep(0.1)
        assert client.decide().action == "A"


@pytest.mark.parametrize("call", ["set", "set_shadow"])
def test_an_operation_that_tries_a_policy_is_waited_for_longer(stub, kind, call):
    def slowly(path, body):
        time.sleep(0.2)
        return 200, {"state": "none"}

    stub.answers = [(200, slowly)]
    with kind(stub.address, "page", attempts=2, timeout=0.05) as client:
        found = client.set(policy="random") if call == "set" else client.set_shadow("random")
    assert found
    assert len(stub.seen) == 1


def test_the_client_operates_shadows_and_alarms(stub, client):
    alarm = {"kind": "refits", "at": "2030-01-31T00:00:00Z", "active": True, "sentence": "it fails"}
    answers = {
        "/bandits/page/shadow": {"state": "running", "policy": "random"},
        "/bandits/page/shadow/promote": {"version": 3},
        "/bandits/page/shadow/roll-back": {"version": 2},
        "/bandits/page/alarms": {"alarms": [alarm]},
        "/bandits/page/alarms/acknowledge": {"alarms": [{**alarm, "active": False}]},
    }
    stub.answers = [(200, lambda path, body: (200, answers[path]))]
    assert client.shadow() == client.set_shadow("random")
    assert (client.promote_shadow(), client.roll_back_shadow()) == (3, 2)
    assert client.alarms() == [alarm]
    assert not client.acknowledge_alarms()[0]["active"]
    assert [path for path, _, _ in stub.seen] == [next(iter(answers)), *answers]
