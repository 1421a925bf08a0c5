"""Who calls, and whether they may: keys, sessions, origins and rates."""

import contextlib
import ipaddress
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from submax.bandit.declaring import Who
from submax.core.summary import listed
from submax.server.keys import BROWSER_SCOPES, Key
from submax.server.limits import RateLimit, RefusedError

if TYPE_CHECKING:
    from starlette.types import Scope

    from submax.server.service import Service

# Holds the token of a session. Browsers send it from pages of this site only, and changes that
# pages of other sites send are refused by their origin.
COOKIE = "submax_session"
RATE = 20_000.0
"""Requests a second for a key and a bandit, if the key has no rate: only a runaway client meets
it."""
BROWSER_RATE = 100.0
"""Requests a second for a browser key without a rate: anyone can copy the key from the page."""
HOST = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(:[0-9]{1,5})?")
# A path of this server to which a browser may be sent after signing in.
LOCAL_PATH = re.compile(r"/(?![/\\])[A-Za-z0-9/_.?=&%~,:+-]*")
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip",
             "via")  # fmt: skip
"""Headers by which proxies say for whom they send a request."""
NO_KEY = (
    "a key is needed: send it as the header 'Authorization: Bearer KEY'; commands take it from "
    "SUBMAX_KEY or SUBMAX_KEY_FILE"
)
UNKNOWN_KEY = (
    "this key has expired, is unknown or was revoked: use another, or make one with submax keys add"
)


def read_headers(scope: "Scope") -> dict[str, str]:
    """The headers of a request by their names in small letters; repeated ones are joined.

    A repeated key, host or origin therefore fits nothing and is refused.
    """
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        word, text = name.decode("latin-1"), value.decode("latin-1")
        headers[word] = text if word not in headers else f"{headers[word]}, {text}"
    return headers


class Caller(NamedTuple):
    """Who sent a request: somebody with a key, or somebody on this machine without one.

    ``session`` is the token of the session if the key is that of a session. ``encrypted``: the
    request came through HTTPS, as a proxy says. ``name`` is that of a caller without a key.
    """

    key: Key | None = None
    session: str = ""
    encrypted: bool = False
    name: str = "HTTP"

    @property
    def who(self) -> Who:
        return self.name if self.key is None else (self.key.name, self.key.id)

    @property
    def is_browser(self) -> bool:
        """Whether the key is one that anyone can read in a page."""
        return self.key is not None and self.key.origins is not None

    @property
    def may_change(self) -> bool:
        """Whether bandits may be changed; for pages, which hide what is refused anyway."""
        return self.key is None or "admin" in self.key.scopes

    @property
    def source(self) -> str:
        """The id of the key; empty if the server needs no keys."""
        return "" if self.key is None else self.key.id

    def may_see(self, bandit: str) -> bool:
        return self.key is None or self.key.bandits is None or bandit in self.key.bandits


class Access:
    """Authenticates requests, and refuses those that are not allowed."""

    def __init__(self, service: "Service", rate: float = RATE) -> None:
        self._service, self._rate, self._limit = service, rate, RateLimit()

    async def caller(
        self,
        scope: "Scope",
        headers: Mapping[str, str],
        needs: str | None,
        bandit: str | None = None,
        *,
        partial: bool = False,
    ) -> Caller:
        """The caller of a request that ``needs`` a scope, on a bandit or on the whole server.

        With ``partial`` a key for some bandits is enough. Without a scope anyone is allowed.
        """
        encrypted = headers.get("x-forwarded-proto", "").endswith("https")
        if not HOST.fullmatch(headers.get("host", "")):
            raise RefusedError(400, "the header Host is not valid: send the server's name")
        if needs is None:
            key, session = await self._session(headers)
            return Caller(key, session, encrypted)
        if not self._service.keys.needed:
            self._check_local(scope, headers, needs)
            return Caller(encrypted=encrypted)
        kind, _, text = headers.get("authorization", "").partition(" ")
        text = text.strip() if kind.lower() == "bearer" else ""
        key, session = self._service.keys.find(text), ""
        if not text:
            key, session = await self._session(headers)
        if key is None:
            raise RefusedError(401, UNKNOWN_KEY if text else NO_KEY)
        self._check_origin(headers, key)
        self._service.keys.note_use(key.id)
        if not key.allows(needs, bandit) and not (partial and {needs, "admin"} & {*key.scopes}):
            problem = f"lacks the scope {needs!r}"
            if key.bandits is not None and {needs, "admin"} & {*key.scopes}:
                where = "the whole server" if bandit is None else f"{bandit!r:.80}"
                problem = f"is for {listed(key.bandits)}, not for {where}"
            raise RefusedError(403, f"this key {problem}: use another key")
        return Caller(key, session, encrypted)

    async def _session(self, headers: Mapping[str, str]) -> tuple[Key | None, str]:
        from starlette.requests import cookie_parser

        token = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        find = self._service.sessions.find
        key = await self._service.in_thread(find, token) if token else None
        return key, "" if key is None else token

    def check_rate(self, caller: Caller, bandit: str, cost: float = 1.0) -> None:
        rate = None if caller.key is None else caller.key.rate
        if rate is None:
            rate = BROWSER_RATE if caller.is_browser else self._rate
        if not self._limit.allows((caller.source, bandit), rate, cost):
            seconds = {"Retry-After": str(math.ceil(max(1.0, 1 / rate)))}
            raise RefusedError(429, f"more than {rate:g} requests a second: slow down", seconds)

    def _check_local(self, scope: "Scope", headers: Mapping[str, str], needs: str) -> None:
        """Refuse what does not come from this machine itself, as long as there are no keys.

        A request may come through a proxy, or from a page of another site that makes a browser on
        this machine send it. nginx sends no header that says so, but HTTP/1.0. Pages of servers on
        this machine may decide and reward.
        """
        host = headers["host"]
        named = HOST.fullmatch(host)
        make_key = "create a key with submax keys add"
        if named is None or not is_loopback(named[1].strip("[]")):
            raise RefusedError(
                403,
                "without keys the server answers only requests to 127.0.0.1 and localhost: "
                f"{make_key}",
            )
        if scope["http_version"] in ("1", "1.0") or any(name in headers for name in FORWARDED):
            raise RefusedError(
                403,
                "this request was forwarded by a proxy, so without keys anyone could do anything: "
                f"{make_key}",
            )
        origin = headers.get("origin")
        allowed = origin is None or _same_site(origin, host)
        if not allowed and not (needs in BROWSER_SCOPES and self.is_declared(str(origin))):
            sentence = f"without keys the server does not answer pages of other sites: {make_key}"
            raise RefusedError(403, sentence, code="origin-not-allowed")

    # Pages of other sites; see https://fetch.spec.whatwg.org/#http-cors

    def _check_origin(self, headers: Mapping[str, str], key: Key) -> None:
        """Refuse pages of sites that were not declared, and keys that are not for pages."""
        origin = headers.get("origin")
        if origin is None or _same_site(origin, headers.get("host", "")):
            return
        if origin not in (key.origins or ()):
            raise RefusedError(
                403,
                f"pages of {origin!r:.80} may not use this key: create one for them with submax "
                "keys add --origin",
                code="origin-not-allowed",
            )

    def is_declared(self, origin: str) -> bool:
        """Whether a key is for pages of this site; without keys, whether it is on this machine."""
        if self._service.keys.needed:
            return origin in self._service.keys.origins()
        with contextlib.suppress(ValueError):
            return is_loopback(urlsplit(origin).hostname or "")
        return False


def _same_site(origin: str, host: str) -> bool:
    return origin in (f"http://{host}", f"https://{host}")


@lru_cache(1024)
def is_loopback(host: str) -> bool:
    """Whether a server at this host can be reached only from the same machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("192.0.2.1")
    (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def local_path(path: str | None) -> str:
    """The path of this server to go to after signing in; the first page if it is another place.

    >>> local_path("/bandits/shop?span=2d"), local_path("/\\t/evil.example"), local_path("//evil")
    ('/bandits/shop?span=2d', '/', '/')
    """
    return path if path and LOCAL_PATH.fullmatch(path) else "/"
