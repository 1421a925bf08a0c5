"""Rewards in the background, processes that fork, event loops, and several servers."""

import asyncio
import os
import socket
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from refusals import raises_code
from waiting import wait_until

from submax.client import AsyncClient, Client

CALLERS = 8


def decided(one):
    return {"id": one["id"], "action": one["id"].upper(), "propensity": 1.0, "version": 0}


def receipt(one):
    status = "conflict" if one["value"] == 9.0 else "accepted"
    return {"id": one["id"], "status": status}


def answer(path, body):
    """What a server would answer; an id with a ! is refused, and so is a reward of 5."""
    word = path.rpartition("/")[2]
    items = body.get("requests") or body.get("rewards") or [body]
    if any("!" in one["id"] or one.get("value") == 5.0 for one in items):
        return 400, {"error": "this id is not allowed"}
    if word == "decide":
        return 200, decided(body)
    if word == "decide-many":
        return 200, {"decisions": [decided(one) for one in items]}
    if word == "reward-many":
        return 200, {"receipts": [receipt(one) for one in items]}
    if body["value"] == 9.0:
        return 409, {"error": "another reward is stored"}
    return 200, receipt(body)


def sent(stub):
    """The ids of all decisions and rewards that the server was sent, in order."""
    items = [body.get("requests") or body.get("rewards") or [body] for _, body, _ in stub.seen]
    return sorted(one["id"] for each in items for one in each)


@pytest.fixture
def answering(stub):
    stub.answers = [(200, answer)]
    return stub


def test_queued_rewards_are_sent_before_close_returns(answering):
    client = Client(answering.address, "page")
    futures = [client.queue_reward(f"v{n}", 1.0) for n in range(500)]
    client.close()
    assert all(one.result(0).status == "accepted" for one in futures)
    assert len(answering.seen) < 100


def test_queued_rewards_are_sent_before_python_ends(answering):
    script = (
        "import submax, sys\n"
        "client = submax.Client(sys.argv[1], 'page')\n"
        "for number in range(50): client.queue_reward(f'v{number}', 1.0)\n"
    )
    subprocess.run([sys.executable, "-c", script, answering.address], check=True, timeout=60)
    assert sent(answering) == sorted(f"v{number}" for number in range(50))


def test_flush_fails_if_queued_rewards_were_not_stored(answering):
    client = Client(answering.address, "page")
    client.queue_reward("v1", 1.0)
    client.queue_reward("v2", 5.0)
    with raises_code("store-unavailable"):
        client.flush()
    client.close()


def test_a_forked_process_has_connections_and_rewards_of_its_own(answering):
    client = Client(answering.address, "page")
    client.decide(id="a")
    answering.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(client.decide, id="busy")
        queued = client.queue_reward("v1", 1.0)
        wait_until(lambda: len(answering.seen) == 3)
        with warnings.catch_warnings():
            # Python and JAX warn of a fork beside threads, which is what is tested here.
            warnings.simplefilter("ignore")
            process = os.fork()
        if not process:
            # In the child: what the parent has under way is the parent's.
            try:
                client.queue_reward("v2", 1.0)
                client.decide(id="child")
                client.flush()
            finally:
                os._exit(0)
        answering.gate.set()
        assert os.waitpid(process, 0)[1] == 0
        assert queued.result(60).status == "accepted"
        assert busy.result(60).action == "BUSY"
    client.close()
    assert sent(answering) == ["a", "busy", "child", "v1", "v2"]


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


def test_a_queued_reward_that_is_wrong_does_not_lose_the_others(answering):
    client = Client(answering.address, "page")
    answering.gate.clear()
    values = [1.0, 5.0, 0.0, 9.0, 1.0]
    futures = [client.queue_reward(f"v{n}", value) for n, value in enumerate(values)]
    answering.gate.set()
    with raises_code("store-unavailable"):
        client.close()
    assert [one.exception() and one.exception().code for one in futures] == [
        None,
        "invalid-input",
        None,
        "conflict",
        None,
    ]
