"""An ASGI application in this process, with a client, and fixtures that serve stores."""

import asyncio
from threading import Thread

import httpx
import pytest
from waiting import wait_until

from submax.server.app import App
from submax.server.service import Service

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


class InProcess:
    """A client of an application in this process; requests may come from several threads."""

    def __init__(self, app):
        self.app = app
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever)
        self._thread.start()
        transport = httpx.ASGITransport(app, raise_app_exceptions=True)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1")
        lifespan = getattr(app, "lifespan", None) or app.router.lifespan_context
        self._lifespan = lifespan(app)
        self._wait(self._lifespan.__aenter__())

    def request(self, method: str, path: str, **options) -> httpx.Response:
        return self._wait(self._client.request(method, path, **options))

    def get(self, path: str, **options) -> httpx.Response:
        return self.request("GET", path, **options)

    def page(self, path: str, **options) -> httpx.Response:
        """What a browser gets."""
        return self.get(path, headers={**BROWSER, **options.pop("headers", {})}, **options)

    def post(self, path: str, **options) -> httpx.Response:
        return self.request("POST", path, **options)

    def delete(self, path: str, **options) -> httpx.Response:
        return self.request("DELETE", path, **options)

    def close(self) -> None:
        if self._thread.is_alive():
            self._wait(self._client.aclose())
            self._wait(self._lifespan.__aexit__(None, None, None))
            self._wait(self._loop.shutdown_default_executor())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _wait(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)


@pytest.fixture
def serving():
    """An application over a store or a service, which is ready if that ``is_awaited``."""
    yield from _applications()


@pytest.fixture(scope="module")
def shared_serving():
    """Like ``serving``, for all tests of a module."""
    yield from _applications()


def _applications():
    opened = []

    def serving(store, *, is_awaited=True, **options) -> InProcess:
        service = store if isinstance(store, Service) else Service(store)
        opened.append(InProcess(App(service, **options)))
        if is_awaited:
            wait_until(lambda: service.ready)
        return opened[-1]

    yield serving
    for client in opened:
        client.close()
