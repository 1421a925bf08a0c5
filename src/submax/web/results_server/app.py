"""The application that shows result folders as pages and as JSON."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submax.core.errors import InputError, NotFoundError
from submax.web.dashboard.asset_files import Assets
from submax.web.dashboard.page import Page
from submax.web.dashboard.page_view import PageView
from submax.web.dashboard.renderer import Renderer
from submax.web.dashboard.viewer import Viewer
from submax.web.results_server.description import description
from submax.web.results_server.folders import Folders
from submax.web.results_server.result_page import Asked, ResultPage
from submax.web.results_server.result_pages import PAGES
from submax.web.server.access.addresses import is_loopback
from submax.web.server.interface.answers import Failure
from submax.web.server.interface.query import check_query
from submax.web.server.interface.responses import ENCODER, JSON, failure
from submax.web.server.pages.page_response import (
    address_of,
    known_tag,
    page_response,
    wants_page,
)

LOG = logging.getLogger("submax")
VIEWER = Viewer(may_change=False)
FAILED = Page("results/failed.html", "This did not work")
Endpoint: TypeAlias = Callable[[Request], Awaitable[Response]]


def make_app(folders: Folders) -> Starlette:
    """The application for some folders, which it only reads."""
    assets = Assets()
    renderer = Renderer(f"/assets/{assets.tag}")
    routes = []
    for one in PAGES:
        twin = "/index.json" if one.path == "/" else f"{one.path}.json"
        # The address with .json first: the name of a folder may contain any character.
        for path in (twin, one.path):
            routes.append(Route(path, _endpoint(one, folders, renderer), methods=["GET"]))
    routes.sort(key=lambda route: not route.path.endswith(".json"))
    routes.append(Route("/assets/{tag}/{path:path}", _asset_endpoint(assets), methods=["GET"]))
    text = ENCODER.encode(description(PAGES))
    routes.append(Route("/openapi.json", _described(text), methods=["GET"]))
    return Starlette(routes=routes, exception_handlers={404: _no_page(renderer)})


def _endpoint(one: ResultPage, folders: Folders, renderer: Renderer) -> Endpoint:
    async def answer(request: Request) -> Response:
        query = request.query_params
        asked = Asked(
            request.path_params.get("name", ""), {key: query.getlist(key) for key in query}
        )
        try:
            check_local(request)
            check_query(query, one.query)
            data = await run_in_threadpool(one.build, folders, asked)
            if not wants_page(request):
                return Response(ENCODER.encode(data), media_type=JSON)
            page = replace(one.page, refresh_seconds=_refresh(one.page, data))
            return await run_in_threadpool(
                page_response, renderer, _view(page, data, request), known_tag(request)
            )
        except InputError as error:
            status = 404 if isinstance(error, NotFoundError) else 400
            status = 403 if error.code == "forbidden" else status
            return _refused(renderer, request, status, str(error), error.code)
        except Exception:
            LOG.exception("the page %s failed", request.url.path)
            sentence = "The page has a defect, which is not yours: see the log of this command."
            return _refused(renderer, request, 500, sentence, "defect")

    return answer


def check_local(request: Request) -> None:
    """Refuse a request that another site makes a browser on this machine send."""
    host = request.headers.get("host", "")
    if not is_loopback(urlsplit(f"//{host}").hostname or ""):
        raise InputError(
            f"the address was {host!r:.80}, and only this machine is allowed: open "
            "http://127.0.0.1 with the port of this server",
            code="forbidden",
        )


def _refresh(page: Page, data: Any) -> int:
    """How often a page is loaded again: never if its results do not change any more."""
    return 0 if getattr(data, "state", "") == "finished" else page.refresh_seconds


def _view(page: Page, data: Any, request: Request) -> PageView:
    return PageView(page, data, VIEWER, address_of(request))


def _refused(
    renderer: Renderer, request: Request, status: int, sentence: str, code: str
) -> Response:
    if not wants_page(request):
        return failure(status, sentence, code=code)
    page = page_response(renderer, _view(FAILED, Failure(sentence, code), request))
    page.status_code = status
    return page


def _no_page(renderer: Renderer) -> Callable[[Request, Exception], Awaitable[Response]]:
    async def answer(request: Request, error: Exception) -> Response:
        sentence = f"There is no page {request.url.path!r:.80}: the page / lists all folders."
        return _refused(renderer, request, 404, sentence, "not-found")

    return answer


def _asset_endpoint(assets: Assets) -> Endpoint:
    async def answer(request: Request) -> Response:
        found = assets.get(request.path_params["path"])
        if found is None:
            return failure(404, "there is no such asset: load the page again")
        headers = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
        return Response(found.content, headers=headers, media_type=found.media)

    return answer


def _described(text: bytes) -> Endpoint:
    async def answer(request: Request) -> Response:
        return Response(text, media_type=JSON)

    return answer
