"""Processes that fork, event loops, and several servers."""

import asyncio
import os
import socket
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from refusals import raises_code
from waiting import wait_until

from submax.client import AsyncClient, Client


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
