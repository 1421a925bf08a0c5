"""The addresses of pages: who may see them, how they are rendered, and what failures look like."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from submax.bandit.declaring import audit_lines
from submax.core.checks import one_of
from submax.core.errors import Error
from submax.server.access import Caller, local_path, read_headers
from submax.server.limits import RefusedError
from submax.server.pages.arms import arms_page
from submax.server.pages.charts import SPANS, as_csv, cells_of
from submax.server.pages.decisions import decisions_page
from submax.server.pages.formats import FORMATS, chart_rows, interval, points, uncertain
from submax.server.pages.glossary import TERMS
from submax.server.pages.operating import health, settings_page
from submax.server.pages.overview import bandit_row, overview, slot_of

if TYPE_CHECKING:
    from submax.server.access import Access
    from submax.server.service import Service

HTML = "text/html"
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
MEDIA = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
"""The media types of static files, by the end of their names."""
TABS = {
    "overview": "Overview",
    "arms": "Arms and segments",
    "decisions": "Decisions",
    "health": "Health",
    "settings": "Settings",
}
FAILED_TITLES = {
    400: "This address is not valid",
    401: "You are not signed in",
    403: "Your key does not allow this",
    404: "There is nothing here",
    405: "This address is not a page",
    429: "Too many requests",
    500: "The server failed",
    503: "The server is not ready yet",
}
RETRY_SECONDS = 3
"""How often a page is loaded again while the server is not ready."""
CHANGES = 200
"""Changes on the page of the audit, the newest."""


@dataclass(frozen=True)
class Page:
    """A page: its template and title, and how often it is loaded again while it is open.

    ``build`` makes its data from a bandit and the parameters of the query, which are those in
    ``parameters``. ``section`` is the name of its entry in the navigation.
    """

    template: str
    title: str
    build: Callable[..., Any] | None = None
    parameters: tuple[str, ...] = ()
    refresh_seconds: int = 0
    section: str = ""


PAGES = {
    "overview": Page("overview.html", TABS["overview"], overview, ("span", "slot"), 10),
    "arms": Page("arms.html", TABS["arms"], arms_page, ("slot", "page", "first", "second"), 10),
    "decisions": Page("decisions.html", TABS["decisions"], decisions_page, ("id", "unit")),
    "health": Page("health.html", TABS["health"], health, (), 10),
    "settings": Page("settings.html", TABS["settings"], settings_page),
}
"""The pages of a bandit by the end of their addresses."""
HOME = Page("home.html", "Bandits", section="bandits", refresh_seconds=10)
KEYS = Page("keys.html", "Keys", section="keys")
AUDIT = Page("audit.html", "Audit", section="audit")
LOGIN = Page("login.html", "Sign in")


class Viewer(msgspec.Struct, frozen=True):
    """What a page needs to know of the person who looks at it.

    ``may_change`` says whether forms that change something are shown. ``token`` is sent back with
    every change, so a page of another site cannot make the browser send one.
    """

    may_change: bool = False
    may_create: bool = False
    token: str = ""
    signed_in: bool = False
    name: str = ""
    needs_key: bool = False


@dataclass
class StaticFiles:
    """Scripts and styles in memory: content and media type by path.

    ``tag`` is a part of their addresses that changes with them, so browsers may keep them.
    """

    found: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    tag: str = ""

    @classmethod
    def read(cls) -> "StaticFiles":
        """The files that come with the package."""
        found = _read(files("submax.server") / "static", "")
        digest = hashlib.sha256()
        for path, (content, _) in sorted(found.items()):
            digest.update(path.encode() + content)
        return cls(found, digest.hexdigest()[:12])

    async def answer(self, request: Request) -> Response:
        """A file; no key is needed."""
        content, media = self.found.get(request.path_params["path"], (None, None))
        if content is None:
            return Response("there is no such file: load the page again\n", 404)
        current = request.path_params["tag"] == self.tag
        kept = "public, max-age=31536000, immutable" if current else "no-cache"
        headers = {"Cache-Control": kept, "X-Content-Type-Options": "nosniff"}
        return Response(content, headers=headers, media_type=media)


def _read(folder: Traversable, prefix: str) -> dict[str, tuple[bytes, str]]:
    found: dict[str, tuple[bytes, str]] = {}
    for one in folder.iterdir():
        if one.is_dir():
            found |= _read(one, f"{prefix}{one.name}/")
        elif (end := one.name[one.name.rfind(".") :]) in MEDIA:
            found[f"{prefix}{one.name}"] = one.read_bytes(), MEDIA[end]
    return found


class Pages:
    """Shows pages to people who may see them."""

    def __init__(self, service: "Service", access: "Access") -> None:
        self._service, self._access = service, access
        self._static = StaticFiles.read()
        self._templates = Environment(
            loader=PackageLoader("submax.server", "templates"),
            # Every name and text is shown as text, whatever it holds.
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(FORMATS)
        self._templates.globals.update(
            interval=interval,
            points=points,
            uncertain=uncertain,
            chart_rows=chart_rows,
            terms=TERMS,
            tabs=TABS,
            spans={name: text for name, (text, _, _) in SPANS.items()},
            assets=f"/assets/{self._static.tag}",
        )

    def routes(self) -> list[BaseRoute]:
        """The routes of all pages and of what they load."""
        return [
            Route("/assets/{tag}/{path:path}", self._static.answer),
            Route("/", self._home),
            Route("/login", self._login),
            Route("/keys", self._keys),
            Route("/audit", self._audit),
            Route("/bandits/{name}", self._to_overview),
            Route("/bandits/{name}/numbers.csv", self._csv),
            *(
                Route(f"/bandits/{{name}}/{end}", partial(self._of_bandit, page))
                for end, page in PAGES.items()
            ),
        ]

    # The pages

    async def _home(self, request: Request) -> Response:
        caller = await self._access.page_caller(request.scope, partial=True)
        _check_query(request, ())

        def rows() -> list[Any]:
            names = [name for name in self._service.names() if caller.may_see(name)]
            return [bandit_row(one) for one in self._service.opened() if one.name in names]

        bandits = await self._service.in_thread(rows)
        return await self._shown(request, HOME, caller, {"bandits": bandits})

    async def _login(self, request: Request) -> Response:
        caller = await self._anybody(request)
        following = local_path(request.query_params.get("next"))
        return await self._shown(request, LOGIN, caller, {"next": following})

    async def _keys(self, request: Request) -> Response:
        caller = await self._administrator(request)
        used = self._service.keys.last_uses()
        keys = [
            {
                **{name: getattr(one, name) for name in SHOWN_OF_KEYS},
                "last_used": used.get(one.id),
            }
            for one in sorted(self._service.keys, key=lambda one: one.created)
        ]
        server = str(request.base_url).rstrip("/")
        return await self._shown(request, KEYS, caller, {"keys": keys, "server": server})

    async def _audit(self, request: Request) -> Response:
        caller = await self._administrator(request)
        changes = await self._service.in_thread(audit_lines, self._service.store, CHANGES)
        return await self._shown(request, AUDIT, caller, {"changes": changes})

    async def _of_bandit(self, page: Page, request: Request) -> Response:
        name = request.path_params["name"]
        caller = await self._access.page_caller(request.scope, name)
        _check_query(request, page.parameters)
        asked = [
            request.query_params.get(word, "" if page.template == "decisions.html" else None)
            for word in page.parameters
        ]
        assert page.build is not None
        build = page.build
        data = await self._service.in_thread(lambda: build(self._service.find(name), *asked))
        return await self._shown(request, page, caller, data)

    async def _csv(self, request: Request) -> Response:
        name = request.path_params["name"]
        await self._access.page_caller(request.scope, name)
        _check_query(request, ("span", "slot"))
        span, slot = map(request.query_params.get, ("span", "slot"))

        def text() -> str:
            bandit = self._service.find(name)
            chosen = slot_of([one.name for one in bandit.menu.slots], slot)
            return as_csv(cells_of(bandit, span, chosen))

        found = await self._service.in_thread(text)
        disposition = f'attachment; filename="{quote(name, safe="")}.csv"'
        headers = {**HEADERS, "Content-Disposition": disposition}
        return Response(found, headers=headers, media_type="text/csv")

    async def _to_overview(self, request: Request) -> Response:
        path = f"/bandits/{quote(request.path_params['name'], safe='')}/overview"
        # The query goes along, so the overview uses or refuses it.
        query = f"?{request.url.query}" if request.url.query else ""
        return RedirectResponse(path + query, 307)

    # How they are shown

    async def _administrator(self, request: Request) -> Caller:
        _check_query(request, ())
        return await self._access.caller(request.scope, read_headers(request.scope), "admin")

    async def _anybody(self, request: Request) -> Caller:
        return await self._access.caller(request.scope, read_headers(request.scope), None)

    async def failure(self, request: Request, error: Error, status: int) -> Response:
        """The page that says what failed; without a key one is sent to sign in."""
        if status == 401 and request.method in ("GET", "HEAD"):
            # Quoted, so a & in the address does not begin a parameter of the login.
            wanted = quote(request.url.path, safe="/")
            return RedirectResponse(f"/login?next={wanted}", 303, HEADERS)
        title = FAILED_TITLES.get(status, "This did not work")
        page = Page("failed.html", title, refresh_seconds=RETRY_SECONDS if status == 503 else 0)
        try:
            caller = await self._anybody(request)
        except Error:
            caller = None
        data = {"error": str(error)[:500], "status": status}
        response = await self._shown(request, page, caller, data)
        response.status_code = status
        if isinstance(error, RefusedError):
            response.headers.update(error.headers)
        return response

    async def _shown(
        self, request: Request, page: Page, caller: Caller | None, data: Any
    ) -> Response:
        """A page as HTML; if the browser has the same one already, only that it is the same."""
        viewer = self._viewer(caller)
        address = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        known = request.headers.get("if-none-match")
        return await self._service.in_thread(self._rendered, page, viewer, address, data, known)

    def _rendered(
        self, page: Page, viewer: Viewer, address: str, data: Any, known: str | None
    ) -> Response:
        shown = page.template, page.title, data, viewer, address
        tag = f'"{hashlib.sha256(msgspec.json.encode(shown, enc_hook=vars)).hexdigest()[:32]}"'
        if known == tag:
            return Response(status_code=304, headers=HEADERS)
        content = self._templates.get_template(page.template).render(
            page=page, data=data, viewer=viewer, address=address, tag=tag
        )
        return Response(content, headers={**HEADERS, "ETag": tag}, media_type=HTML)

    def _viewer(self, caller: Caller | None) -> Viewer:
        needed = self._service.keys.needed
        if caller is None or (needed and caller.key is None):
            return Viewer(may_change=not needed, needs_key=needed)
        session, key = caller.session, caller.key
        return Viewer(
            caller.may_change,
            caller.may_change and (key is None or key.bandits is None),
            session.csrf_token if session else "",
            session is not None,
            key.name if key else "",
        )


SHOWN_OF_KEYS = ("id", "name", "scopes", "bandits", "expires", "browser", "origins")


def _check_query(request: Request, allowed: tuple[str, ...]) -> None:
    """Refuse parameters that the page does not know, such as misspelt ones."""
    for word in request.query_params:
        one_of("parameter of the query", word, allowed)
