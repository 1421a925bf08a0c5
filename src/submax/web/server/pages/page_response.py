"""Answers of HTTP that show pages, and which requests want one."""

from starlette.requests import Request
from starlette.responses import Response

from submax.web.dashboard.page_view import PageView
from submax.web.dashboard.renderer import Renderer
from submax.web.server.interface.incoming import Incoming
from submax.web.server.interface.responses import JSON

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


def page_response(renderer: Renderer, view: PageView, known: str | None = None) -> Response:
    """A page; if the browser has the one with the tag ``known``, only that it is the same."""
    tag = view.tag
    if known == tag:
        return Response(status_code=304, headers=HEADERS)
    headers = {**HEADERS, "ETag": tag}
    return Response(renderer.render(view), headers=headers, media_type=HTML)


def known_tag(request: Request) -> str | None:
    """The tag of the page that a browser has, None if it has none."""
    return request.headers.get("if-none-match")


def wants_page(request: Incoming) -> bool:
    """Whether a request prefers HTML to JSON; programs, which accept anything, get JSON."""
    if not isinstance(request, Request) or request.url.path.endswith(".json"):
        return False
    if request.headers.get("hx-request") == "true":
        # A page that loads itself again; htmx sends this header and accepts anything.
        return True
    accepted = request.headers.get("accept", "").split(",")
    types = [one.partition(";")[0].strip() for one in accepted]
    return HTML in types and JSON not in types


def address_of(request: Request) -> str:
    """The path of a request with its query."""
    query = request.url.query
    return f"{request.url.path}?{query}" if query else request.url.path
