"""Requests that come at the same time: each has its own answer, and nothing is stored twice."""

from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from waiting import wait_until

from submax.core.errors import StoreError
from submax.server import deciding

CALLERS = 32


class Trouble:
    """Lets the store write, and then does what ``kind`` says about ids with the word bad."""

    kind = ""

    def __init__(self, write):
        self._write = write

    def __call__(self, bandit, rows):
        written = self._write(bandit, rows)
        if self.kind and any("bad" in row.id for row in rows):
            written.result()
            if self.kind == "silent":
                return Future()
            raise StoreError("the disk is full")
        return written


@pytest.fixture
def trouble(store, monkeypatch):
    trouble = Trouble(store.write_decisions)
    monkeypatch.setattr(store, "write_decisions", trouble)
    return trouble


@pytest.fixture
def decide(http):
    """Decide for several ids at the same time; the answers are in the same order."""
    arms = {"name": "page", "actions": ["A", "B"], "context": {"age": "number"}}
    assert http.post("/bandits", json=arms).status_code == 201

    def decide(*identifiers):
        def one(identifier):
            context = {"age": "old" if identifier == "wrong" else 1.0}
            body = {"id": identifier, "context": context}
            return http.post("/bandits/page/decide", json=body)

        with ThreadPoolExecutor(CALLERS) as pool:
            return list(pool.map(one, identifiers))

    return decide


def decisions(store):
    """The ids of all decisions that are stored."""
    return [identifier for (identifier,) in store.select("select id from decision order by id")]


def test_each_has_its_own_answer_and_a_wrong_one_fails_alone(decide, store):
    asked = [f"d{number}" for number in range(100)]
    wrong, *found = decide("wrong", *asked)
    assert wrong.status_code == 400
    assert [one.json()["id"] for one in found] == asked
    assert decisions(store) == sorted(asked)


def test_the_same_id_is_one_decision(decide, store):
    found = [one.json() for one in decide(*["d1"] * CALLERS)]
    assert sorted(one["repeated"] for one in found) == [False] + [True] * (CALLERS - 1)
    assert len({one["action"] for one in found}) == 1
    assert decisions(store) == ["d1"]


def test_a_decision_that_was_written_and_not_acknowledged_is_sent_again_and_stored_once(
    decide, store, trouble
):
    trouble.kind = "full"
    (failed,) = decide("bad")
    assert (failed.status_code, failed.json()["code"]) == (503, "store-unavailable")
    trouble.kind = ""
    (again,) = decide("bad")
    assert again.json()["repeated"]
    assert decisions(store) == ["bad"]


def test_a_store_that_does_not_answer_is_given_up(decide, trouble, monkeypatch):
    monkeypatch.setattr(deciding, "WRITE_TIMEOUT_SECONDS", 0.2)
    trouble.kind = "silent"
    (failed,) = decide("bad")
    assert (failed.status_code, failed.json()["code"]) == (503, "store-unavailable")
    wait_until(lambda: decide("d1")[0].status_code == 200)
