"""What both clients of Python send, what they answer, and when they give up."""

import asyncio
import math
import os
import socket
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from refusals import raises_code
from waiting import wait_until

from submax.client import AsyncClient, Client
from submax.core.errors import ConflictError, ForbiddenError, InputError, NotFoundError, StoreError
from submax.core.rewards import Counts
from submax.schema.context import Category, Number

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


def test_a_declaration_with_objects_is_sent_in_words(stub, client):
    stub.answers = [(200, {})]
    context = {"a": Number(default=3), "b": float, "c": Category(("x",)), "d": ["y"]}
    client.create(["A"], context=context, rewards=Counts())
    _, body, _ = stub.seen[0]
    assert body["context"].pop("a") == {"type": "number", "default": 3}
    assert body["context"].pop("c") == {"type": "category", "values": ["x"], "default": None}
    assert body["context"] == {"b": "number", "d": ["y"]}
    assert body["rewards"]["kind"] == "counts"


@pytest.mark.parametrize("failure", [(503, BUSY), ("hang up", b"")])
def test_it_gives_up_after_some_attempts(stub, client, failure):
    stub.answers = [failure]
    with raises_code("store-unavailable"):
        client.reward("d1", 1.0)
    assert len(stub.seen) == 3


def test_a_server_that_does_not_answer_is_given_up_on(kind):
    with socket.create_server(("127.0.0.1", 0)) as silent:
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


ERRORS = {
    **dict.fromkeys((302, 400, 413), InputError),
    **dict.fromkeys((401, 403), ForbiddenError),
    **{404: NotFoundError, 409: ConflictError, 500: StoreError},
}


@pytest.mark.parametrize(("status", "error"), ERRORS.items())
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


def test_the_key_and_numbers_of_numpy_are_sent_and_an_address_may_have_a_path(stub, kind):
    with kind(f"{stub.address}/below/", "page", key="submax.a.b") as client:
        client.decide({"age": np.float32(0.5), "visits": np.int64(3)}, id="")
    ((path, body, headers),) = stub.seen
    assert path == "/below/bandits/page/decide"
    assert headers["Authorization"] == "Bearer submax.a.b"
    assert body["context"] == {"age": 0.5, "visits": 3}
    # An empty id is sent as it is, and the server says what is wrong.
    assert body["id"] == ""


def test_many_decisions_each_have_an_id_before_they_are_sent(stub, client):
    stub.answers = [(503, BUSY), (200, {"decisions": [DECISION, DECISION]})]
    assert len(client.decide_many([{"context": {"age": 1}}, {"id": "mine"}])) == 2
    first, second = (body["requests"] for _, body, _ in stub.seen)
    assert first == second
    assert first[1]["id"] == "mine"
    assert len(first[0]["id"]) == 36


@pytest.mark.parametrize("value", [math.nan, np.float32("inf"), object(), "\ud800"])
def test_what_cannot_be_sent_is_refused(stub, client, value):
    for call in (
        lambda: client.decide({"age": value}),
        lambda: client.reward("d1", value),
        lambda: client.reward_many([{"id": "d1", "value": value}]),
    ):
        with raises_code("invalid-input"):
            call()
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


def answer(path, body):
    """What a server would answer to a decision."""
    return 200, {"id": body["id"], "action": body["id"].upper(), "propensity": 1.0, "version": 0}


@pytest.fixture
def answering(stub):
    stub.answers = [(200, answer)]
    return stub


def test_a_forked_process_has_connections_of_its_own(answering):
    client = Client(answering.address, "page")
    client.decide(id="a")
    answering.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(client.decide, id="busy")
        wait_until(lambda: len(answering.seen) == 2)
        with warnings.catch_warnings():
            # Python and JAX warn of a fork beside threads, which is what is tested here.
            warnings.simplefilter("ignore")
            process = os.fork()
        if not process:
            # In the child: what the parent has under way is the parent's.
            try:
                client.decide(id="child")
            finally:
                os._exit(0)
        answering.gate.set()
        assert os.waitpid(process, 0)[1] == 0
        assert busy.result(60).action == "BUSY"
    client.close()
    assert sorted(body["id"] for _, body, _ in answering.seen) == ["a", "busy", "child"]


def test_a_cancelled_task_leaves_the_others_alone(answering):
    async def main():
        async with AsyncClient(answering.address, "page") as client:
            first = asyncio.create_task(client.decide(id="a"))
            second = asyncio.create_task(client.decide(id="b"))
            await asyncio.sleep(0)
            first.cancel()
            assert (await second).action == "B"

    asyncio.run(main())


def test_a_client_is_used_in_one_loop_after_another_and_not_in_two(answering):
    client = AsyncClient(answering.address, "page")

    async def main():
        found = await client.decide(id="a")
        await client.close()
        return found.action

    assert [asyncio.run(main()), asyncio.run(main())] == ["A", "A"]
    with asyncio.Runner() as first, asyncio.Runner() as second:
        first.run(client.decide(id="a"))
        with raises_code("invalid-input"):
            second.run(client.decide(id="b"))
        first.run(client.close())


def test_the_next_server_answers_when_one_is_down(answering, kind):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        down = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with kind([down, answering.address], "page", attempts=2) as client:
            assert [client.decide(id=name).action for name in ("a", "b")] == ["A", "B"]
        with kind([down, down], "page", attempts=2) as client, raises_code("store-unavailable"):
            client.decide()
