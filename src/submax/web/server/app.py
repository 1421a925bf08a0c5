"""The HTTP application: its routes, and how it starts and ends."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submax.web.dashboard.asset_files import Assets
from submax.web.server.access.key import BROWSER_SCOPES
from submax.web.server.access.origins import Origins
from submax.web.server.interface.description import description
from submax.web.server.interface.incoming import Endpoint, Incoming
from submax.web.server.interface.operation import Operation
from submax.web.server.interface.operations.all_operations import operations
from submax.web.server.interface.request_pipeline import RATE, RequestPipeline
from submax.web.server.interface.responses import ENCODER
from submax.web.server.metrics import Metrics
from submax.web.server.pages.javascript_client import PATH, JavaScriptClient
from submax.web.server.pages.operations import page_operations
from submax.web.server.pages.page_endpoint import Pages
from submax.web.server.service import Service


def make_app(
    service: Service,
    rate: float = RATE,
    metrics: Metrics | None = None,
    pipeline: RequestPipeline | None = None,
    origins: Origins | None = None,
) -> Starlette:
    """The application that serves a service, which it starts and closes.

    A ``pipeline``, if given, is used for all requests, and has its own rate, metrics and origins.
    """
    pipeline = pipeline or RequestPipeline(
        service, rate, metrics or Metrics(service.opened), origins
    )
    all_operations = [*operations(), *page_operations(), *pipeline.operations()]
    pipeline.described = ENCODER.encode(description(all_operations))
    pages = Pages(Assets(), service.sessions)
    routes = [
        Route(path, _by_method(methods), methods=list(methods))
        for path, methods in _endpoints_by_path(all_operations, pipeline, pages).items()
    ]
    routes.append(Route("/assets/{tag}/{path:path}", pages.asset, methods=["GET"]))
    routes.append(Route(PATH, JavaScriptClient().answer, methods=["GET"]))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        starting = loop.run_in_executor(None, service.start)
        try:
            yield
        finally:
            service.stop()
            await starting
            await loop.run_in_executor(None, service.close)

    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={HTTPException: pages.no_route(pipeline.no_route)},
    )
    # A path that does not exist is answered with 404, and not redirected.
    app.router.redirect_slashes = False
    return app


def _endpoints_by_path(
    all_operations: Sequence[Operation], pipeline: RequestPipeline, pages: Pages
) -> dict[str, dict[str, Endpoint]]:
    """The endpoints of each path, by their methods.

    All methods of a path share one route, so that the answer to a wrong method names all right
    ones.
    """
    found: dict[str, dict[str, Endpoint]] = {}
    for one in all_operations:
        found.setdefault(one.path, {})[one.method] = pipeline.endpoint(one)
    for path, endpoint in pages.endpoints(all_operations, pipeline):
        found.setdefault(path, {})["GET"] = endpoint
    # Pages of declared origins may decide and reward; a browser sends a preflight first.
    for one in all_operations:
        if one.scope in BROWSER_SCOPES:
            found[one.path]["OPTIONS"] = pipeline.preflight
    return found


def quick_endpoints(pipeline: RequestPipeline) -> dict[bytes, Endpoint]:
    """The endpoints of frequent operations, by the last part of their path.

    ``QuickProtocol`` answers them without the routes of the application.
    """
    return {
        one.path.rpartition("/")[2].encode(): pipeline.endpoint(one)
        for one in operations()
        if one.frequent
    }


def _by_method(endpoints: dict[str, Endpoint]) -> Endpoint:
    async def answer(request: Incoming) -> Response:
        assert isinstance(request, Request)
        method = "GET" if request.method == "HEAD" else request.method
        return await endpoints[method](request)

    return answer
