import asyncio

import pytest

from submax.core.errors import InputError, StoreError
from submax.core.running.background_work import BackgroundWork
from submax.live.bandits.open import open_bandit
from submax.live.store.memory_store import MemoryStore
from submax.web.server.deciding import gathered_decisions
from submax.web.server.deciding.durable_writes import DurableWrites
from submax.web.server.deciding.gathered_decisions import MAX_GATHERED, GatheredDecisions
from submax.web.server.deciding.timed_draws import TimedDraws
from submax.web.server.interface.messages import Decide


class Noting(MemoryStore):
    """Notes how many entries each append has, and fails if a key has the word."""

    error: Exception | None = None

    def append(self, stream, entries):
        self.__dict__.setdefault("sizes", []).append(len(entries))
        self.__dict__.setdefault("held_off", []).append(gathered_decisions.BACKGROUND.is_held_off)
        if self.error is not None and any("bad" in (entry.key or "") for entry in entries):
            raise self.error
        return super().append(stream, entries)


@pytest.fixture
def store():
    return Noting()


@pytest.fixture
def decided(store):
    """Decide for several requests at the same time; errors are returned."""
    bandit = open_bandit(
        store, name="page", actions=["A", "B"], context={"age": float}, background=False
    )
    draws = TimedDraws(bandit)

    def decided(*requests):
        async def all_of_them():
            decisions = GatheredDecisions(draws, DurableWrites(store))
            await decisions.decide(Decide(context={"age": 1.0}))
            store.sizes.clear()
            return await asyncio.gather(*map(decisions.decide, requests), return_exceptions=True)

        return asyncio.run(all_of_them())

    return decided


def request(identifier, age=1.0):
    return Decide(context={"age": age}, id=identifier)


def test_a_fit_is_held_off_until_decisions_are_written(decided, store, monkeypatch):
    work = BackgroundWork()
    monkeypatch.setattr(gathered_decisions, "BACKGROUND", work)
    decided(request("d0"))
    assert not any(store.held_off)
    store.held_off.clear()
    with work:
        decided(request("d1"), request("d2"))
        assert not work.is_held_off
    # The first one is drawn in a thread, and the others together.
    assert store.held_off == [True, True]


def test_requests_of_one_turn_are_appended_at_once(decided, store):
    found = decided(*[request(f"d{number}") for number in range(10)])
    assert [one.id for one in found] == [f"d{number}" for number in range(10)]
    assert store.sizes == [10]


def test_the_same_id_twice_in_one_turn_is_one_decision(decided):
    first, second = decided(request("d1"), request("d1"))
    assert (first.repeated, second.repeated) == (False, True)
    assert first.action == second.action


def test_very_many_requests_are_drawn_in_parts(decided, store):
    found = decided(*[request(f"d{number}") for number in range(MAX_GATHERED + 5)])
    assert len({one.id for one in found}) == MAX_GATHERED + 5
    assert store.sizes == [MAX_GATHERED, 5]


def test_an_invalid_request_fails_alone(decided, store):
    found = decided(request("d1"), request("d2", age="old"), request("d3"))
    assert isinstance(found[1], InputError)
    assert [found[0].id, found[2].id] == ["d1", "d3"]
    assert store.sizes == [2]


def test_an_entry_that_cannot_be_written_fails_alone(decided, store):
    store.error = ValueError("cannot be written")
    found = decided(request("d1"), request("bad"), request("d3"))
    assert found[1] is store.error
    assert [found[0].id, found[2].id] == ["d1", "d3"]


def test_after_an_error_of_the_store_nothing_is_repeated(decided, store):
    store.error = StoreError("the disk is full")
    assert decided(request("d1"), request("bad")) == [store.error] * 2
    assert store.sizes == [2]


def test_a_caller_that_gives_up_does_not_disturb_the_others(store, decided, monkeypatch):
    work = BackgroundWork()
    monkeypatch.setattr(gathered_decisions, "BACKGROUND", work)
    decided()
    bandit = open_bandit(store, name="page", background=False)

    async def cancelled():
        decisions = GatheredDecisions(TimedDraws(bandit), DurableWrites(store))
        await decisions.decide(request("d0"))
        first = asyncio.ensure_future(decisions.decide(request("d1")))
        second = asyncio.ensure_future(decisions.decide(request("d2")))
        await asyncio.sleep(0)
        assert work.is_held_off
        first.cancel()
        return await second

    with work:
        assert asyncio.run(cancelled()).id == "d2"
    assert not work.is_held_off
