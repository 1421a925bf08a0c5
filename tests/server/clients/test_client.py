"""What both clients of Python send, what they answer, and when they give up."""

import math
import socket
import subprocess
import sys

import numpy as np
import pytest
from refusals import raises_code

from submax.core.errors import ConflictError, ForbiddenError, InputError, NotFoundError, StoreError

from .conftest import DECISION

BUSY = {"error": "try again"}


@pytest.mark.parametrize(
    "failure", [(503, BUSY), (429, BUSY), ("hang up", b""), ("cut off", b"{"), (503, b"<html>")]
)
def test_a_request_that_fails_is_sent_again_with_the_same_id(stub, client, failure):
    stub.answers = [failure, failure, (200, DECISION)]
    assert client.decide().action == "A"
    bodies = [body for _, body, _ in stub.seen]
    assert len(bodies) == 3
    assert all(body == bodies[0] for body in bodies)
    assert len(bodies[0]["id"]) == 36


@pytest.mark.parametrize("failure", [(503, BUSY), ("hang up", b"")])
def test_it_gives_up_after_some_attempts(stub, client, failure):
    stub.answers = [failure]
    with raises_code("store-unavailable"):
        client.reward("d1", 1.0)
    assert len(stub.seen) == 3


@pytest.mark.parametrize("listens", [False, True], ids=["not there", "silent"])
def test_a_server_that_does_not_answer_is_given_up_on(kind, listens):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            kind(address, "page", attempts=2, timeout=0.1) as client,
            raises_code("store-unavailable"),
        ):
            client.decide()


def test_the_deadline_ends_all_attempts(stub, kind):
    stub.answers = [(503, BUSY)]
    with (
        kind(stub.address, "page", attempts=10**6, deadline=0.05) as client,
        raises_code("deadline"),
    ):
        client.decide()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (302, InputError),
        (404, NotFoundError),
        (409, ConflictError),
        (400, InputError),
        (401, ForbiddenError),
        (403, ForbiddenError),
        (413, InputError),
        (500, StoreError),
    ],
)
def test_errors_are_what_they_are_without_a_server_and_not_tried_again(stub, client, status, error):
    stub.answers = [(status, {"error": "the sentence of the server"})]
    # The sentence of the server reaches the caller.
    with pytest.raises(error, match="the sentence of the server") as raised:
        client.decide()
    assert type(raised.value) is error
    assert len(stub.seen) == 1


GOOD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = GOOD + b"Transfer-Encoding: chunked\r\n\r\n"
BROKEN_ANSWERS = {
    "no http": ("raw", b"\x00\xff\r\n\r\n"),
    "wrong chunk": ("raw", CHUNKED + b"zz\r\n"),
    **{f"another server's {text}": (200, text) for text in (b"", b"<html>", b"[]", b'{"id": 1}')},
    "no utf-8": (200, b"\xff"),
}


@pytest.mark.parametrize("form", BROKEN_ANSWERS)
def test_an_answer_that_is_broken_or_of_another_server_is_not_taken_for_one(stub, client, form):
    stub.answers = [BROKEN_ANSWERS[form]]
    with raises_code("store-unavailable"):
        client.decide()


def test_the_key_is_sent_and_an_address_may_have_a_path(stub, kind):
    with kind(f"{stub.address}/below/", "page", key="submax.a.b") as client:
        client.decide(id="")
    ((path, body, headers),) = stub.seen
    assert path == "/below/bandits/page/decide"
    assert headers["Authorization"] == "Bearer submax.a.b"
    # An empty id is sent as it is, and the server says what is wrong.
    assert body["id"] == ""


def test_many_decisions_each_have_an_id_before_they_are_sent(stub, client):
    stub.answers = [(503, BUSY), (200, {"decisions": [DECISION, DECISION]})]
    assert len(client.decide_many([{"context": {"age": 1}}, {"id": "mine"}])) == 2
    first, second = (body["requests"] for _, body, _ in stub.seen)
    assert first == second
    assert first[1]["id"] == "mine"
    assert len(first[0]["id"]) == 36


def test_numbers_of_numpy_are_sent_as_numbers(stub, client):
    client.decide({"age": np.float32(0.5), "visits": np.int64(3)})
    assert stub.seen[0][1]["context"] == {"age": 0.5, "visits": 3}


@pytest.mark.parametrize("value", [math.nan, np.float32("inf"), object(), "\ud800"])
def test_what_cannot_be_sent_is_refused(stub, client, value):
    with raises_code("invalid-input"):
        client.decide({"age": value})
    if isinstance(value, float | np.floating):
        with raises_code("invalid-input"):
            client.reward("d1", value)
        with raises_code("invalid-input"):
            client.reward_many([{"id": "d1", "value": value}])
    assert stub.seen == []


@pytest.mark.parametrize(
    ("address", "options", "parameter"),
    [
        ("127.0.0.1:8000", {}, "address"),
        ("http://a:99999", {}, "address"),
        ("http://[::1", {}, "address"),
        ("http://a", {"attempts": 0}, "attempts"),
        ("http://a", {"timeout": 0}, "timeout"),
        ("http://a", {"deadline": 0}, "deadline"),
        ([], {}, "address"),
        ("http://a", {"key": "a\nb"}, "key"),
        ("http://a", {"bandit": "../x"}, None),
    ],
)
def test_a_client_that_cannot_work_is_not_made(kind, address, options, parameter):
    with raises_code("invalid-input", parameter):
        kind(address, **{"bandit": "page", **options})


def test_clients_need_neither_numpy_nor_the_server():
    script = (
        "import sys, submax; submax.Client, submax.AsyncClient;"
        "print({'numpy', 'starlette', 'granian'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"
