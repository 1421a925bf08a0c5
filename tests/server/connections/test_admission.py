import asyncio

import pytest

from submax.live.store.memory_store import MemoryStore
from submax.web.server.access.key_registry import KeyRegistry
from submax.web.server.connections.admission import Admission


class Waiting:
    """An application whose requests stay under way until they are let go."""

    def __init__(self):
        self.go = asyncio.Event()

    async def __call__(self, scope, receive, send):
        await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})


async def count_admitted(keys, places, *paths_and_keys):
    """How many of the requests were answered with 200, with all of them at the same time."""
    app, refused, statuses = Waiting(), [], []
    admission = Admission(app, keys, places, lambda: refused.append(None))

    async def send(message):
        if "status" in message:
            statuses.append(message["status"])

    requests = []
    for path, key in paths_and_keys:
        headers = [(b"authorization", f"Bearer {key}".encode())] if key else []
        scope = {"type": "http", "path": path, "headers": headers}
        requests.append(asyncio.ensure_future(admission(scope, None, send)))
        await asyncio.sleep(0)
    app.go.set()
    await asyncio.gather(*requests)
    assert statuses.count(503) == len(refused)
    return statuses.count(200)


@pytest.fixture
def keys():
    return KeyRegistry(MemoryStore())


def test_strangers_keys_and_health_checks_have_their_shares(keys):
    _, key = keys.add(["decide"])
    strangers = [("/openapi.json", None)] * 100
    known = [("/bandits/a/decide", key)] * 100
    health = [("/healthz", None)] * 3 + [("/readyz", None)] * 3
    assert asyncio.run(count_admitted(keys, 20, *strangers)) == 16
    assert asyncio.run(count_admitted(keys, 20, *strangers, *known)) == 19
    assert asyncio.run(count_admitted(keys, 20, *strangers, *known, *health)) == 25


def test_a_wrong_key_is_a_stranger(keys):
    number, _ = keys.add(["decide"])
    wrong = [("/bandits/a/decide", f"submax.{number}.wrong"), ("/bandits/a/decide", "ä")] * 50
    assert asyncio.run(count_admitted(keys, 20, *wrong)) == 16


def test_without_keys_everybody_is_known(keys):
    assert asyncio.run(count_admitted(keys, 20, *[("/bandits", None)] * 100)) == 19
