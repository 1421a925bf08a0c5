"""Answers an operation with a page if a browser asks, and with JSON otherwise."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from submax.core.decoding import known_type
from submax.web.dashboard.asset_files import Assets
from submax.web.dashboard.page import Page
from submax.web.dashboard.page_view import PageView
from submax.web.dashboard.renderer import Renderer
from submax.web.dashboard.viewer import Viewer
from submax.web.server.access.key import Key
from submax.web.server.access.sessions import Sessions, cookie_of
from submax.web.server.interface.answers import Failure
from submax.web.server.interface.handlers import in_thread
from submax.web.server.interface.incoming import Endpoint, Incoming
from submax.web.server.interface.operation import Operation
from submax.web.server.interface.operations.paths import BANDIT
from submax.web.server.interface.request_pipeline import RequestPipeline
from submax.web.server.interface.responses import failure
from submax.web.server.pages.page_response import (
    HEADERS,
    address_of,
    known_tag,
    page_response,
    wants_page,
)

RouteFailure = Callable[[Request, Exception], Awaitable[Response]]
"""Answers a request to a path or a method that does not exist."""
FAILED_TITLES = {
    400: "This address is not valid",
    403: "Your key does not allow this",
    404: "There is nothing here",
    405: "This address is not a page",
    429: "Too many requests",
    500: "The server failed",
    503: "The server is not ready yet",
}
"""The titles of pages on requests that failed, by status."""
RETRY_SECONDS = 3
"""How often a page is loaded again while the server is not ready."""


class Pages:
    """Renders the answers of operations, and of those that failed."""

    def __init__(self, assets: Assets, sessions: Sessions) -> None:
        self._assets, self._sessions = assets, sessions
        self._renderer = Renderer(f"/assets/{assets.tag}")

    def endpoints(
        self, operations: Sequence[Operation], pipeline: RequestPipeline
    ) -> Iterator[tuple[str, Endpoint]]:
        """The paths at which there is a page, with JSON for programs there and at PATH.json."""
        for one in operations:
            if one.page is not None:
                data = pipeline.endpoint(one)
                page = self._failing(pipeline.endpoint(one, partial(self._rendered, one.page)))
                yield one.path, _chosen(page, data)
                yield "/index.json" if one.path == "/" else f"{one.path}.json", data
        yield BANDIT, self._to_overview(pipeline.endpoint(_shows_bandit(operations)))

    async def asset(self, request: Request) -> Response:
        """A script or a style; its address changes with it, so that browsers may keep it."""
        found = self._assets.get(request.path_params["path"])
        if found is None:
            return failure(404, "there is no such asset: load the page again")
        current = request.path_params["tag"] == self._assets.tag
        kept = "public, max-age=31536000, immutable" if current else "no-cache"
        headers = {"Cache-Control": kept, "X-Content-Type-Options": "nosniff"}
        return Response(found.content, headers=headers, media_type=found.media)

    async def _rendered(self, page: Page, data: Any, request: Request, key: Key | None) -> Response:
        """The page that shows an answer, made in a thread so that decisions go on."""
        view = PageView(page, data, self._viewer(request, key), address_of(request))
        return await in_thread(page_response, self._renderer, view, known_tag(request))

    def _to_overview(self, data: Endpoint) -> Endpoint:
        """An endpoint that sends browsers from the address of a bandit to its overview."""

        async def redirect(request: Incoming) -> Response:
            assert isinstance(request, Request)
            path = f"/bandits/{quote(request.path_params['name'], safe='')}/overview"
            # The query goes along, so that the overview uses or refuses it.
            behind = f"?{request.url.query}" if request.url.query else ""
            return RedirectResponse(path + behind, 307)

        return _chosen(redirect, data)

    def _failing(self, answered: Endpoint) -> Endpoint:
        """An endpoint whose failures are pages, too; without a key one is sent to the login."""

        async def answer(request: Incoming) -> Response:
            response = await answered(request)
            if response.status_code < 400:
                return response
            assert isinstance(request, Request)
            if response.status_code == 401:
                # Quoted, so that a & in the address does not begin a parameter of the login.
                wanted = quote(request.url.path, safe="/")
                return RedirectResponse(f"/login?next={wanted}", 303, HEADERS)
            return await self._failed(request, response)

        return answer

    def no_route(self, answered: RouteFailure) -> RouteFailure:
        """The answer to a path or a method that does not exist: a page, if a browser asks."""

        async def answer(request: Request, error: Exception) -> Response:
            response = await answered(request, error)
            if not wants_page(request):
                return response
            if response.status_code == 404:
                path = request.url.path
                response = failure(404, f"there is no page {path!r:.80}: begin with all bandits")
            return await self._failed(request, response)

        return answer

    async def _failed(self, request: Request, response: Response) -> Response:
        """The page that shows the answer to a request that failed."""
        status = response.status_code
        title = FAILED_TITLES.get(status, "This did not work")
        page = Page("failed.html", title, refresh_seconds=RETRY_SECONDS if status == 503 else 0)
        data = msgspec.json.decode(response.body, type=known_type(Failure))
        view = PageView(page, data, self._viewer(request, None), address_of(request))
        rendered = await in_thread(page_response, self._renderer, view)
        rendered.status_code = status
        for name in ("allow", "retry-after"):
            if name in response.headers:
                rendered.headers[name] = response.headers[name]
        return rendered

    def _viewer(self, request: Request, key: Key | None) -> Viewer:
        """Who looks at a page; ``key`` is None if the page needs none, or failed."""
        key = key or self._sessions.key(request.headers, safe=True)
        if key is None:
            needed = self._sessions.needed
            return Viewer(may_change=not needed, needs_key=needed)
        cookie = cookie_of(request.headers)
        if cookie is None:
            return Viewer("admin" in key.scopes, name=key.name)
        return Viewer("admin" in key.scopes, self._sessions.token(cookie), True, key.name)


def _shows_bandit(operations: Sequence[Operation]) -> Operation:
    return next(one for one in operations if one.path == BANDIT and one.method == "GET")


def _chosen(page: Endpoint, data: Endpoint) -> Endpoint:
    """An endpoint that answers browsers with a page, and programs with data."""

    async def answer(request: Incoming) -> Response:
        return await (page if wants_page(request) else data)(request)

    return answer
