import json
import math
import socket
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest

import submax.server.client
from submax.core.errors import (
    ConflictError,
    ForbiddenError,
    InputError,
    NotFoundError,
    StoreError,
)
from submax.server.client import Client

DECISION = {"id": "d1", "action": "A", "propensity": 0.5, "version": 0}
RECEIPT = {"id": "d1", "status": "accepted"}


class Stub:
    """A server that answers as it is told, the last answer for ever, and keeps what it was sent."""

    def __init__(self):
        self.answers, self.seen = [(200, DECISION)], []
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"] or 0))
                stub.seen.append((self.path, json.loads(body), dict(self.headers)))
                status, answer = stub.answers.pop(0) if len(stub.answers) > 1 else stub.answers[0]
                if status == 0:
                    self.close_connection = True
                    return
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def stub(monkeypatch):
    monkeypatch.setattr(submax.server.client, "FIRST_PAUSE", 0.001)
    stub = Stub()
    yield stub
    stub.close()


@pytest.fixture
def client(stub):
    with Client(stub.address, "page", attempts=4) as client:
        yield client


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
    with pytest.raises(StoreError, match="after 4 attempts"):
        client.reward("d1", 1.0)
    assert len(stub.seen) == 4


def test_a_server_that_is_not_there_is_tried_as_often(monkeypatch):
    monkeypatch.setattr(submax.server.client, "FIRST_PAUSE", 0.001)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(StoreError, match=r"after 3 attempts .ConnectionRefusedError"):
            Client(address, "page", attempts=3).decide()


def test_a_server_that_does_not_answer_is_given_up_on(monkeypatch):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(StoreError, match=r"after 2 attempts .TimeoutError"):
            Client(address, "page", attempts=2, timeout=0.1).decide()


@pytest.mark.parametrize(
    ("status", "kind"),
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
def test_errors_are_what_they_are_without_a_server_and_not_tried_again(stub, client, status, kind):
    stub.answers = [(status, {"error": "the sentence of the server"})]
    with pytest.raises(kind, match="the sentence of the server") as raised:
        client.decide()
    assert type(raised.value) is kind
    assert len(stub.seen) == 1


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"id": 1}', b"\xff"])
def test_an_answer_of_another_server_is_said_so(stub, client, answer):
    stub.answers = [(200, answer)]
    with pytest.raises(StoreError, match="not one of a submax server"):
        client.decide()


def test_a_redirection_is_not_followed(stub, client):
    stub.answers = [(302, b"")]
    with pytest.raises(InputError):
        client.decide()


def test_the_key_is_sent(stub):
    with Client(stub.address, "page", key="submax.a.b") as client:
        client.decide()
    assert stub.seen[0][2]["Authorization"] == "Bearer submax.a.b"


def test_an_address_may_have_a_path(stub):
    with Client(f"{stub.address}/below/", "page") as client:
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
    with pytest.raises(InputError, match="finite"):
        client.decide({"age": value})
    with pytest.raises(InputError, match="finite"):
        client.reward("d1", value)
    with pytest.raises(InputError, match="finite"):
        client.reward_many([{"id": "d1", "value": value}])
    assert stub.seen == []


@pytest.mark.parametrize("value", [object(), "\ud800", object])
def test_what_is_no_json_is_refused_and_not_sent(stub, client, value):
    with pytest.raises(InputError, match="JSON"):
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
        ("http://a", {"key": "a\nb"}, "give the whole text"),
        ("http://a", {"key": "é"}, "give the whole text"),
    ],
)
def test_a_client_that_cannot_work_is_not_made(address, options, words):
    with pytest.raises(InputError, match=words):
        Client(address, "page", **options)


def test_the_name_of_a_bandit_is_checked():
    with pytest.raises(InputError, match="the bandit was named"):
        Client("http://a", "../x")
