"""The addresses of pages: who may see them, how they are rendered, and what failures look like."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from submax.bandit.declaring import audit_lines
from submax.core.checks import one_of
from submax.core.errors import Error
from submax.server import javascript
from submax.server.access import Caller, local_path, read_headers
from submax.server.limits import RefusedError
from submax.server.pages.formats import FILTERS, Shown, chart_rows, interval
from submax.server.pages.views import (
    SPANS,
    arms_page,
    bandit_row,
    decisions_page,
    health,
    overview,
    settings_page,
)

if TYPE_CHECKING:
    from submax.server.access import Access
    from submax.server.service import Service

HEADERS = {
    # What a page may load: nothing but what this server sends.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Accept, Cookie, HX-Request",
}
RETRY_SECONDS = 3  # how often a page is loaded again while the server is not ready
CHANGES = 200  # on the page of the audit, the newest


@dataclass(frozen=True)
class Page:
    """A page: its template and title, and how often it is loaded again while it is open.

    ``build`` makes its data from a bandit, or from the service and the caller, and from the
    ``parameters`` of the query. ``section`` is the name of its entry in the navigation, and
    ``scope`` what a key needs.
    """

    template: str
    title: str
    build: Callable[..., Any]
    parameters: tuple[str, ...] = ()
    refresh_seconds: int = 0
    section: str = ""
    scope: str | None = "read"


PAGES = {
    "overview": Page("overview.html", "Overview", overview, ("span", "slot"), 10),
    "arms": Page("arms.html", "Arms and segments", arms_page, ("slot", "first", "second"), 10),
    "decisions": Page("decisions.html", "Decisions", decisions_page, ("id", "unit")),
    "health": Page("health.html", "Health", health, (), 10),
    "settings": Page("settings.html", "Settings", settings_page),
}
"""The pages of a bandit by the end of their addresses."""
SHARED = {
    "/": Page("home.html", "Bandits", lambda service, caller: Shown(bandits=[
        bandit_row(one) for one in service.opened() if caller.may_see(one.name)
    ]), (), 10, "bandits"),
    "/keys": Page("keys.html", "Keys", lambda service, _: Shown(keys=sorted(
        service.keys, key=lambda one: one.created)), (), 0, "keys", "admin"),
    "/audit": Page("audit.html", "Audit", lambda service, _: Shown(
        changes=audit_lines(service.store, CHANGES)), (), 0, "audit", "admin"),
    "/login": Page("login.html", "Sign in", lambda service, caller, following: Shown(
        next=local_path(following)), ("next",), scope=None),
}  # fmt: skip
"""The pages of the server by address."""


def template_environment() -> Environment:
    """The templates, with what all of them use."""
    made = Environment(
        loader=PackageLoader("submax.server", "templates"),
        # Every name and text is shown as text, whatever it holds.
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(FILTERS)
    made.globals.update(
        interval=interval,
        chart_rows=chart_rows,
        assets="/assets",
        tabs={end: page.title for end, page in PAGES.items()},
        spans={name: text for name, (text, _, _) in SPANS.items()},
    )
    return made


class Pages:
    """Shows pages to people who may see them."""

    def __init__(self, service: "Service", access: "Access") -> None:
        self._service, self._access = service, access
        self._files = StaticFiles(packages=[("submax.server", "static")])
        self._templates = template_environment()

    def routes(self) -> Mapping[str, Callable[[Request], Awaitable[Response]]]:
        bandit = "/bandits/{name}"
        pages = SHARED | {f"{bandit}/{end}": page for end, page in PAGES.items()}
        return {
            **{path: partial(self._page, page) for path, page in pages.items()},
            bandit: self._to_overview,
            javascript.PATH: javascript.answer,
            "/assets/{file}": self._file,
            "/assets/{folder}/{file}": self._file,
        }

    async def _page(self, page: Page, request: Request) -> Response:
        name = request.path_params.get("name")
        caller = await self._caller(request, page.scope, name)
        for word in request.query_params:
            one_of("parameter of the query", word, page.parameters)
        values = [request.query_params.get(word) for word in page.parameters]

        def built() -> Any:
            if name is not None:
                return page.build(self._service.find(name), *values)
            return page.build(self._service, caller, *values)

        return await self._shown(request, page, caller, await self._service.in_thread(built))

    async def _to_overview(self, request: Request) -> Response:
        name = quote(request.path_params["name"], safe="")
        return RedirectResponse(f"/bandits/{name}/overview", 307)

    async def _file(self, request: Request) -> Response:
        try:
            path = "/".join(request.path_params.values())
            response = await self._files.get_response(path, request.scope)
        except HTTPException as error:
            raise RefusedError(404, "there is no such file: load the page again") from error
        response.headers.update({"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"})
        return response

    async def failure(self, request: Request, error: Error, status: int) -> Response:
        """The page that says what failed; without a key one is sent to sign in."""
        if status == 401 and request.method in ("GET", "HEAD"):
            # Quoted, so a & in the address does not begin a parameter of the login.
            wanted = quote(request.url.path, safe="/")
            return RedirectResponse(f"/login?next={wanted}", 303, HEADERS)
        title = HTTPStatus(status).phrase
        page = Page("failed.html", title, Shown, refresh_seconds=RETRY_SECONDS * (status == 503))
        try:
            caller = await self._caller(request, None)
        except Error:
            caller = None
        data = {"error": str(error)[:500], "status": status}
        response = await self._shown(request, page, caller, data)
        response.status_code = status
        if isinstance(error, RefusedError):
            response.headers.update(error.headers)
        return response

    async def _caller(
        self, request: Request, scope: str | None, bandit: str | None = None
    ) -> Caller:
        headers = read_headers(request.scope)
        partial = scope == "read" and bandit is None
        return await self._access.caller(request.scope, headers, scope, bandit, partial=partial)

    async def _shown(
        self, request: Request, page: Page, caller: Caller | None, data: Any
    ) -> Response:
        """A page as HTML; if the browser has the same one already, only that it is the same."""
        viewer = self._viewer(caller)
        address = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        known = request.headers.get("if-none-match")

        def rendered() -> Response:
            shown = page.template, page.title, data, viewer, address
            tag = f'"{hashlib.sha256(msgspec.json.encode(shown, enc_hook=vars)).hexdigest()[:32]}"'
            if known == tag:
                return Response(status_code=304, headers=HEADERS)
            server = str(request.base_url).rstrip("/")
            content = self._templates.get_template(page.template).render(
                page=page, data=data, viewer=viewer, address=address, tag=tag, server=server
            )
            return Response(content, headers={**HEADERS, "ETag": tag}, media_type="text/html")

        return await self._service.in_thread(rendered)

    def _viewer(self, caller: Caller | None) -> Shown:
        """What a page needs to know of the person who looks at it.

        Forms that change something are shown to those who ``may_change``.
        """
        caller = caller or Caller()
        key, needs_key = caller.key, caller.key is None and self._service.keys.needed
        may_change = caller.may_change and not needs_key
        return Shown(
            may_change=may_change,
            may_create=may_change and (key is None or key.bandits is None),
            signed_in=bool(caller.session),
            name=key.name if key else "",
            needs_key=needs_key,
        )
