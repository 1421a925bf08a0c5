"""Requests of several threads or tasks are sent together, and each caller gets its own answer."""

import asyncio
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from refusals import raises_code
from waiting import wait_until

from submax.client import AsyncClient, Client
from submax.core.errors import ConflictError, InputError, NotFoundError, StoreError

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


@pytest.fixture
def together(answering, request):
    """Make calls at the same time; the results are answers or errors, in their order."""

    def in_threads(word, calls, **options):
        client = Client(answering.address, "page", connections=1, **options)
        with client, ThreadPoolExecutor(len(calls)) as pool:
            method = getattr(client, word)
            futures = [pool.submit(method, *given, **named) for given, named in calls]
            return [one.exception() or one.result() for one in futures]

    def in_tasks(word, calls, **options):
        async def main():
            async with AsyncClient(answering.address, "page", **options) as client:
                method = getattr(client, word)
                waiting = [method(*given, **named) for given, named in calls]
                return await asyncio.gather(*waiting, return_exceptions=True)

        return asyncio.run(main())

    return {"threads": in_threads, "tasks": in_tasks}[request.param]


both = pytest.mark.parametrize("together", ["threads", "tasks"], indirect=True)


@both
def test_each_caller_gets_its_own_decision_and_only_a_wrong_one_fails(together, answering):
    ids = ["a", "b", "c!", "d", "e", "f", "g", "h"]
    found = together("decide", [((), {"id": one}) for one in ids])
    assert [getattr(one, "action", type(one)) for one in found] == [
        InputError if "!" in one else one.upper() for one in ids
    ]


@both
def test_each_caller_gets_the_receipt_of_its_own_reward(together, answering):
    values = [1.0, 0.0, 9.0, 1.0, 5.0]
    calls = [((f"v{n}", value), {}) for n, value in enumerate(values)]
    found = together("reward", calls, gather=0.2)
    assert [getattr(one, "status", type(one)) for one in found] == [
        "accepted",
        "accepted",
        ConflictError,
        "accepted",
        InputError,
    ]


@both
@pytest.mark.parametrize(("status", "error"), [(500, StoreError), (404, NotFoundError)])
def test_a_failure_of_the_server_is_the_failure_of_all(together, answering, status, error):
    answering.answers = [(status, {"error": "broken"})]
    found = together("decide", [((), {"id": f"v{n}"}) for n in range(3)])
    assert [type(one) for one in found] == [error] * 3
    # Each caller has an error of its own.
    assert len({id(one) for one in found}) == 3


@pytest.mark.parametrize("together", ["tasks"], indirect=True)
@pytest.mark.parametrize("count", [CALLERS, 1001])
def test_decisions_asked_at_the_same_time_share_requests(together, answering, count):
    found = together("decide", [((), {"id": f"v{n}"}) for n in range(count)])
    assert [one.id for one in found] == [f"v{n}" for n in range(count)]
    assert len(answering.seen) <= max(1, count // 100)


@both
def test_without_batching_every_request_is_sent_by_itself(together, answering):
    together("decide", [((), {"id": "a"}), ((), {"id": "b"})], batching=False)
    together("reward", [(("a", 1.0), {})], batching=False)
    words = sorted(path.rpartition("/")[2] for path, _, _ in answering.seen)
    assert words == ["decide", "decide", "reward"]


@both
def test_nobody_waits_longer_than_the_deadline_for_the_calls_of_others(together, answering):
    answering.gate.clear()
    found = together("decide", [((), {"id": f"v{n}"}) for n in range(3)], deadline=0.3)
    assert [one.code for one in found] == ["deadline"] * 3
    answering.gate.set()
    assert together("decide", [((), {"id": "later"})])[0].action == "LATER"


def test_queued_rewards_are_sent_before_close_returns(answering):
    client = Client(answering.address, "page", gather=0.05)
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


def test_tasks_queue_rewards_too(answering):
    async def main():
        client = AsyncClient(answering.address, "page", gather=0.05)
        tasks = [client.queue_reward(f"v{n}", 1.0) for n in range(500)]
        await client.close()
        assert all(one.result().status == "accepted" for one in tasks)
        client.queue_reward("v2", 5.0)
        with raises_code("store-unavailable"):
            await client.close()

    asyncio.run(main())
    assert len(answering.seen) < 100


def test_a_forked_process_has_connections_and_rewards_of_its_own(answering):
    client = Client(answering.address, "page", connections=1)
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
        assert queued.result(20).status == "accepted"
        assert busy.result(20).action == "BUSY"
    client.close()
    assert sent(answering) == ["a", "busy", "child", "v1", "v2"]


def test_a_cancelled_task_leaves_the_others_alone(answering):
    async def main():
        async with AsyncClient(answering.address, "page") as client:
            first = asyncio.create_task(client.decide(id="a"))
            second = asyncio.create_task(client.decide(id="b"))
            reward = asyncio.create_task(client.reward("c", 1.0))
            await asyncio.sleep(0)
            first.cancel()
            reward.cancel()
            assert (await second).action == "B"

    asyncio.run(main())
    # A reward is sent, whatever becomes of its caller.
    assert {"b", "c"} <= set(sent(answering))


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
