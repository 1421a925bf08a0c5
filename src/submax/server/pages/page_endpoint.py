"""Answers an operation with a page if a browser asks, and with JSON otherwise."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from submax.dashboard.asset_files import Assets
from submax.dashboard.page import Page
from submax.dashboard.renderer import Renderer
from submax.dashboard.viewer import Viewer
from submax.server.access.key import Key
from submax.server.access.sessions import Sessions, cookie_of
from submax.server.interface.answers import Failure
from submax.server.interface.incoming import Endpoint, Incoming
from submax.server.interface.operation import Operation
from submax.server.interface.operations.paths import BANDIT
from submax.server.interface.request_pipeline import RequestPipeline
from submax.server.interface.responses import JSON, failure

HTML = "text/html"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
"""What a page may load: nothing but what this server sends."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept, Cookie, HX-Request",
}
"""The headers of every page."""
FAILED = Page("failed.html", "This did not work")


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
                shown = self._failing(pipeline.endpoint(one, partial(self._shown, one.page)))
                yield one.path, _chosen(shown, data)
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

    def _shown(self, page: Page, data: Any, request: Request, key: Key | None) -> Response:
        """The page that shows an answer."""
        content = self._renderer.render(page, data, self._viewer(request, key), _address(request))
        return Response(content, headers=HEADERS, media_type=HTML)

    def _to_overview(self, data: Endpoint) -> Endpoint:
        """An endpoint that sends browsers from the address of a bandit to its overview."""

        async def redirect(request: Incoming) -> Response:
            return RedirectResponse(f"/bandits/{request.path_params['name']}/overview", 307)

        return _chosen(redirect, data)

    def _failing(self, answered: Endpoint) -> Endpoint:
        """An endpoint whose failures are pages, too; without a key one is sent to the login."""

        async def answer(request: Incoming) -> Response:
            response = await answered(request)
            if response.status_code < 400:
                return response
            assert isinstance(request, Request)
            if response.status_code == 401:
                return RedirectResponse(f"/login?next={request.url.path}", 303, HEADERS)
            failed = msgspec.json.decode(response.body, type=Failure)
            page = self._shown(FAILED, failed, request, None)
            page.status_code = response.status_code
            return page

        return answer

    def _viewer(self, request: Request, key: Key | None) -> Viewer:
        if key is None:
            return Viewer()
        cookie = cookie_of(request.headers)
        token = "" if cookie is None else self._sessions.token(cookie)
        return Viewer("admin" in key.scopes, token, True, key.name)


def _shows_bandit(operations: Sequence[Operation]) -> Operation:
    return next(one for one in operations if one.path == BANDIT and one.method == "GET")


def _chosen(page: Endpoint, data: Endpoint) -> Endpoint:
    """An endpoint that answers browsers with a page, and programs with data."""

    async def answer(request: Incoming) -> Response:
        return await (page if wants_page(request) else data)(request)

    return answer


def wants_page(request: Incoming) -> bool:
    """Whether a request prefers HTML to JSON; programs, which accept anything, get JSON."""
    if not isinstance(request, Request) or request.url.path.endswith(".json"):
        return False
    if "hx-request" in request.headers:
        # A page that loads itself again; htmx sends this header and accepts anything.
        return True
    accepted = request.headers.get("accept", "").split(",")
    types = [one.partition(";")[0].strip() for one in accepted]
    return HTML in types and JSON not in types


def _address(request: Request) -> str:
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path
