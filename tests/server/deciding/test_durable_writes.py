import asyncio
from concurrent.futures import Future
from threading import Thread

from refusals import raises_code

from submax.core.errors import StoreError
from submax.live.store.pending_write import PendingWrite
from submax.web.server.deciding import durable_writes
from submax.web.server.deciding.durable_writes import DurableWrites


class Waiting:
    """A store whose appends are done when the test says so."""

    def __init__(self):
        self.futures = []

    def append(self, stream, entries):
        self.futures.append(Future())
        return self.futures[-1]


def pending(number):
    return PendingWrite("page/log", [], lambda results: (number, results))


def in_thread(work):
    thread = Thread(target=work)
    thread.start()
    thread.join()


def test_appends_that_end_together_wake_the_loop_once():
    store = Waiting()
    writes = DurableWrites(store)

    async def written():
        loop = asyncio.get_running_loop()
        woken, call = [], loop.call_soon_threadsafe
        tasks = [asyncio.ensure_future(writes.write(pending(number))) for number in range(5)]
        await asyncio.sleep(0)
        loop.call_soon_threadsafe = lambda *given: (woken.append(given), call(*given))[1]
        in_thread(lambda: [one.set_result([]) for one in store.futures])
        found = await asyncio.gather(*tasks)
        del loop.call_soon_threadsafe
        return found, len(woken)

    assert asyncio.run(written()) == ([(number, []) for number in range(5)], 1)


def test_an_error_reaches_its_caller():
    store = Waiting()
    writes = DurableWrites(store)

    async def written():
        tasks = [asyncio.ensure_future(writes.write(pending(number))) for number in range(2)]
        await asyncio.sleep(0)
        in_thread(lambda: store.futures[0].set_exception(StoreError("full")))
        in_thread(lambda: store.futures[1].set_result([]))
        return await asyncio.gather(*tasks, return_exceptions=True)

    error, second = asyncio.run(written())
    assert isinstance(error, StoreError)
    assert second == (1, [])


def test_a_store_that_does_not_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(durable_writes, "WRITE_TIMEOUT_SECONDS", 0.2)
    store = Waiting()
    writes = DurableWrites(store)

    async def written():
        first = asyncio.ensure_future(writes.write(pending(0)))
        await asyncio.sleep(0.1)
        second = asyncio.ensure_future(writes.write(pending(1)))
        with raises_code("store-unavailable"):
            await first
        assert not second.done()
        with raises_code("store-unavailable"):
            await second
        # An append that is done too late changes nothing.
        in_thread(lambda: store.futures[0].set_result([]))
        third = asyncio.ensure_future(writes.write(pending(2)))
        await asyncio.sleep(0)
        in_thread(lambda: store.futures[2].set_result([]))
        return await third

    assert asyncio.run(written()) == (2, [])
