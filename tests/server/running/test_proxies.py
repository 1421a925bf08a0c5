"""The address of a client is that which a declared proxy passes on, and no other."""

import asyncio

import httpx
import pytest

from submax.live.store.memory_store import MemoryStore
from submax.web.server.access.failed_attempts import MAX_FAILURES
from submax.web.server.access.key_registry import KeyRegistry
from submax.web.server.app import quick_endpoints
from submax.web.server.interface.request_pipeline import RequestPipeline
from submax.web.server.interface.small_request import SmallRequest
from submax.web.server.metrics import Metrics
from submax.web.server.run import configuration_of
from submax.web.server.service import Service


@pytest.mark.parametrize(("proxy", "status"), [("10.1.2.3", 401), ("10.9.9.9", 429)])
def test_wrong_keys_are_counted_for_the_client_behind_a_declared_proxy(trial, proxy, status):
    store = MemoryStore()
    KeyRegistry(store).add(["admin"])
    service = Service(store, trial)
    pipeline = RequestPipeline(service, 1e6, Metrics(service.opened))
    configuration = configuration_of(service, pipeline, ["10.1.2.0/24"])
    configuration.load()

    async def ask_quickly():
        """Ask as the quick protocol does, without uvicorn's own reading of the header."""
        endpoint = quick_endpoints(pipeline)[b"decide"]
        for client in ["192.0.2.3"] * (MAX_FAILURES + 1) + ["192.0.2.4"]:
            headers = {"authorization": "Bearer wrong", "x-forwarded-for": client}
            answer = await endpoint(SmallRequest(headers, {"name": "a"}, b"{}", (proxy, 1)))
        return answer.status_code

    async def ask():
        transport = httpx.ASGITransport(configuration.loaded_app, client=(proxy, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            wrong = {"authorization": "Bearer wrong"}
            for _ in range(MAX_FAILURES + 1):
                await client.get("/bandits", headers={**wrong, "x-forwarded-for": "192.0.2.1"})
            other = {**wrong, "x-forwarded-for": "192.0.2.2"}
            return (await client.get("/bandits", headers=other)).status_code

    assert asyncio.run(ask()) == status
    assert asyncio.run(ask_quickly()) == status
    service.close()
