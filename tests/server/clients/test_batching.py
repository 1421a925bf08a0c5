"""Requests of several threads or tasks are sent together, and each caller gets its own answer."""

import asyncio
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from refusals import raises_code

from submax.client import AsyncClient, Client
from submax.core.errors import ConflictError, InputError, NotFoundError, StoreError
from submax.web.server.client.batching.batches import LARGEST_BATCH
from submax.web.server.client.messages.deadline_error import DeadlineError

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


@pytest.fixture
def answering(stub):
    stub.answers = [(200, answer)]
    return stub


@pytest.fixture
def together(answering, eventually, request):
    """Make calls at the same time; the results are answers or errors, in their order."""

    def in_threads(word, calls, **options):
        client = Client(answering.address, "page", connections=1, **options)
        answering.gate.clear()
        with client, ThreadPoolExecutor(len(calls) + 1) as pool:
            first = pool.submit(client.decide, id="first")
            eventually(lambda: len(answering.seen) == 1)
            method = getattr(client, word)
            futures = [pool.submit(method, *given, **named) for given, named in calls]
            if word == "decide":
                eventually(lambda: len(client._decisions._waiting) == len(calls))
            answering.gate.set()
            first.result()
            return [one.exception() or one.result() for one in futures]

    def in_tasks(word, calls, **options):
        async def main():
            async with AsyncClient(answering.address, "page", **options) as client:
                await client.decide(id="first")
                method = getattr(client, word)
                waiting = [method(*given, **named) for given, named in calls]
                return await asyncio.gather(*waiting, return_exceptions=True)

        return asyncio.run(main())

    return {"threads": in_threads, "tasks": in_tasks}[request.param]


both = pytest.mark.parametrize("together", ["threads", "tasks"], indirect=True)


@both
def test_decisions_asked_at_the_same_time_are_one_request(together, answering):
    found = together("decide", [((), {"id": f"v{n}"}) for n in range(CALLERS)])
    assert [one.action for one in found] == [f"V{n}" for n in range(CALLERS)]
    assert [path.rpartition("/")[2] for path, _, _ in answering.seen] == ["decide", "decide-many"]


@both
def test_only_the_wrong_one_of_several_decisions_fails(together, answering):
    ids = ["a", "b", "c!", "d", "e", "f", "g", "h"]
    found = together("decide", [((), {"id": one}) for one in ids])
    assert [getattr(one, "action", None) for one in found] == [
        None if "!" in one else one.upper() for one in ids
    ]
    assert type(found[2]) is InputError
    # One call for all, and two for each of three halvings.
    assert len(answering.seen) == 1 + 1 + 2 * 3


@both
def test_rewards_are_gathered_and_each_has_its_own_answer(together, answering):
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
    assert str(found[2]) == "another reward is stored"
    many = [body for path, body, _ in answering.seen if path.endswith("reward-many")]
    assert len(many[0]["rewards"]) == len(values)


@both
def test_a_failure_of_the_server_is_the_failure_of_all(together, answering):
    def failing(path, body):
        return answer(path, body) if path.endswith("decide") else (500, {"error": "broken"})

    answering.answers = [(200, failing)]
    found = together("decide", [((), {"id": f"v{n}"}) for n in range(3)])
    assert [(type(one), str(one)) for one in found] == [(StoreError, "broken")] * 3
    assert len({id(one) for one in found}) == 3
    assert len(answering.seen) == 2


@both
def test_a_missing_bandit_is_said_to_everybody(together, answering):
    def missing(path, body):
        return answer(path, body) if "first" in str(body) else (404, {"error": "no bandit"})

    answering.answers = [(200, missing)]
    found = together("decide", [((), {"id": f"v{n}"}) for n in range(3)])
    assert [type(one) for one in found] == [NotFoundError] * 3


@both
def test_more_requests_than_one_call_takes_are_several_calls(together, answering):
    count = LARGEST_BATCH + 1 if together.__name__ == "in_tasks" else CALLERS
    padding = "x" * (0 if together.__name__ == "in_tasks" else 100_000)
    calls = [(({"note": padding},), {"id": f"v{n}"}) for n in range(count)]
    found = together("decide", calls)
    assert [one.id for one in found] == [f"v{n}" for n in range(count)]
    sizes = [len(body.get("requests", [0])) for _, body, _ in answering.seen[1:]]
    assert len(sizes) == 2
    assert sum(sizes) == count


@both
def test_without_batching_every_request_is_sent_by_itself(together, answering):
    words = [path for path, _, _ in answering.seen]
    if together.__name__ == "in_threads":
        with Client(answering.address, "page", batching=False) as client:
            client.decide(id="a")
            client.reward("a", 1.0)
    else:
        together("decide", [((), {"id": "a"}), ((), {"id": "b"})], batching=False)
        together("reward", [(("a", 1.0), {})], batching=False)
    words = {path.rpartition("/")[2] for path, _, _ in answering.seen}
    assert words == {"decide", "reward"}


@both
def test_a_deadline_over_in_the_queue_is_said_so(together, answering):
    answering.answers = [(200, answer), (503, {"error": "busy"})]
    found = together("decide", [((), {"id": f"v{n}"}) for n in range(2)], deadline=0.3)
    assert [type(one) for one in found] == [DeadlineError] * 2


def test_queued_rewards_are_sent_before_close_returns(answering):
    client = Client(answering.address, "page", gather=0.05)
    futures = [client.queue_reward(f"v{n}", 1.0) for n in range(500)]
    client.close()
    assert all(one.result(0).status == "accepted" for one in futures)
    assert len(answering.seen) < 10


def test_queued_rewards_are_sent_before_python_ends(answering):
    script = (
        "import submax, sys\n"
        "client = submax.Client(sys.argv[1], 'page')\n"
        "for number in range(50): client.queue_reward(f'v{number}', 1.0)\n"
    )
    subprocess.run([sys.executable, "-c", script, answering.address], check=True, timeout=60)
    sent = [one["id"] for _, body, _ in answering.seen for one in body.get("rewards", [body])]
    assert sorted(sent) == sorted(f"v{number}" for number in range(50))


def test_flush_says_which_queued_rewards_were_not_stored(answering):
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
    assert len(answering.seen) < 10


def test_a_forked_process_has_connections_and_rewards_of_its_own(answering, eventually):
    client = Client(answering.address, "page", connections=1)
    client.decide(id="a")
    answering.gate.clear()
    with ThreadPoolExecutor(1) as pool:
        busy = pool.submit(client.decide, id="busy")
        queued = client.queue_reward("v1", 1.0)
        eventually(lambda: len(answering.seen) == 3)
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
    ids = [one["id"] for _, body, _ in answering.seen for one in body.get("rewards", [body])]
    assert sorted(ids) == ["a", "busy", "child", "v1", "v2"]


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
    ids = [one["id"] for _, body, _ in answering.seen for one in body.get("requests", [body])]
    # Nobody waited for the first decision; a reward is sent, whatever becomes of its caller.
    assert sorted(ids) == ["b", "c"]


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


def test_at_most_so_many_calls_are_under_way(answering, eventually):
    answering.gate.clear()
    client = Client(answering.address, "page", connections=2)
    with client, ThreadPoolExecutor(CALLERS) as pool:
        futures = [pool.submit(client.decide, id=f"v{n}") for n in range(CALLERS)]
        eventually(lambda: len(client._decisions._waiting) == CALLERS - 2)
        eventually(lambda: len(answering.seen) == 2)
        answering.gate.set()
        assert {one.result().id for one in futures} == {f"v{n}" for n in range(CALLERS)}


def test_a_caller_waits_no_longer_than_its_deadline_for_the_calls_of_others(answering, eventually):
    answering.gate.clear()
    patient = Client(answering.address, "page", connections=1)
    patient._options = replace(patient._options, deadline=None)
    with patient, ThreadPoolExecutor(2) as pool:
        first = pool.submit(patient.decide, id="first")
        eventually(lambda: len(answering.seen) == 1)
        patient._options = replace(patient._options, deadline=0.05)
        with raises_code("deadline"):
            patient.decide(id="second")
        assert patient._decisions._waiting == []
        answering.gate.set()
        assert first.result().action == "FIRST"
        patient._options = replace(patient._options, deadline=None)
        assert patient.decide(id="third").action == "THIRD"


def test_a_task_waits_no_longer_than_its_deadline_for_the_calls_of_others(answering):
    async def main():
        async with AsyncClient(answering.address, "page", connections=1) as client:
            answering.gate.clear()
            first = asyncio.create_task(client.decide(id="first"))
            await asyncio.sleep(0.05)
            client._options = replace(client._options, deadline=0.05)
            with raises_code("deadline"):
                await client.decide(id="second")
            answering.gate.set()
            assert (await first).action == "FIRST"

    asyncio.run(main())
