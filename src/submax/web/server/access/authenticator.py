"""Finds out which key a request has, and refuses requests that are not allowed."""

import math
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.requests import Request

from submax.web.server.access.addresses import is_loopback
from submax.web.server.access.failed_attempts import MAX_FAILURES, WINDOW_SECONDS, FailedAttempts
from submax.web.server.access.key import BROWSER_SCOPES, KEY_PARAMETER, Key
from submax.web.server.access.origins import Origins
from submax.web.server.access.refused_error import RefusedError
from submax.web.server.access.trusted_proxies import TrustedProxies
from submax.web.server.interface.incoming import Incoming
from submax.web.server.interface.operation import Operation
from submax.web.server.interface.small_request import SmallRequest
from submax.web.server.service import Service


class Authenticator:
    """Authenticates requests by their keys, sessions of browsers, and origins."""

    def __init__(self, service: Service, origins: Origins) -> None:
        self.proxies = TrustedProxies()
        self._service, self._origins = service, origins
        self._failed = FailedAttempts()

    def authenticated(self, request: Incoming, operation: Operation) -> Key | None:
        """Authenticate a request and return its key.

        If the store never had a key, every request from this machine is allowed, without a key.
        """
        key = None
        if operation.scope is not None and self._service.keys.needed:
            key = self._check_key(request, operation.scope, operation.partial)
        elif operation.scope is not None:
            check_local(request, self._origins if operation.scope in BROWSER_SCOPES else Origins())
        if not operation.early and not self._service.ready:
            raise RefusedError(
                503,
                "the server is not ready, because it is opening its bandits: try again",
                {"Retry-After": "1"},
            )
        return key

    def _check_key(self, request: Incoming, scope: str, partial: bool) -> Key:
        text, in_path = _sent_key(request)
        key = self._service.keys.find(text) if text else self._session_key(request)
        if key is None:
            raise self._unknown_key(request, sent=bool(text))
        if text and in_path and not key.browser:
            raise RefusedError(
                401,
                "this key is in the path, where only keys for browsers are allowed: send it as the "
                "header 'Authorization: Bearer KEY'",
                {"WWW-Authenticate": "Bearer"},
            )
        check_origin(request, key, self._origins)
        self._service.last_use.note(key.id)
        bandit = request.path_params.get("name")
        if not key.allows(scope, bandit) and not (partial and key.may_list):
            raise RefusedError(
                403,
                f"this key does not allow {scope!r} here: use a key with the scope {scope!r} for "
                "this bandit",
            )
        return key

    def _session_key(self, request: Incoming) -> Key | None:
        """The key for which a browser has signed in, if it has."""
        safe = isinstance(request, Request) and request.method in ("GET", "HEAD")
        return self._service.sessions.key(request.headers, safe=safe)

    def _unknown_key(self, request: Incoming, *, sent: bool) -> RefusedError:
        """Why a request without a valid key is refused; too many wrong keys are refused longer."""
        address = request.client.host if request.client is not None else ""
        if isinstance(request, SmallRequest):
            # For other requests uvicorn has read the header.
            forwarded = request.headers.get("x-forwarded-for", "")
            address = self.proxies.client_address(address, forwarded)
        if sent and not self._failed.allows(address):
            return RefusedError(
                429,
                f"more than {MAX_FAILURES} requests with wrong keys came from this address within "
                f"{WINDOW_SECONDS:g} seconds: wait, and send a valid key",
                {"Retry-After": str(math.ceil(WINDOW_SECONDS / MAX_FAILURES))},
            )
        sentence = (
            "this key has expired, is unknown or was revoked: use another, or make one by submax "
            "keys add"
        )
        if not sent:
            sentence = (
                "a key is needed: send it as the header 'Authorization: Bearer KEY'; commands take "
                "it from SUBMAX_KEY or SUBMAX_KEY_FILE"
            )
        return RefusedError(401, sentence, {"WWW-Authenticate": "Bearer"})


def _sent_key(request: Incoming) -> tuple[str, bool]:
    """The text of the key, and whether it is in the path, as that of a beacon of a page."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and text.strip():
        return text.strip(), False
    # A request with a query is no small one.
    if isinstance(request, SmallRequest):
        return "", True
    return request.query_params.get(KEY_PARAMETER, ""), True


def check_origin(request: Incoming, key: Key, origins: Origins) -> None:
    """Refuse pages of sites that were not declared, and keys that are not for pages."""
    origin = request.headers.get("origin")
    if origin is None or urlsplit(origin).netloc == request.headers.get("host", ""):
        return
    if origin not in origins:
        raise origin_refused(origin)
    if not key.browser:
        raise RefusedError(
            403,
            "this key is not for web pages, where everybody can read it: make one by submax keys "
            "add STORE --scope reward --browser",
            code="origin-not-allowed",
        )


def origin_refused(origin: str) -> RefusedError:
    """Why a page of a site that was not declared is refused."""
    return RefusedError(
        403,
        f"pages of {origin!r:.80} may not call this server from a browser: start it with --origin "
        "and the scheme and host of the site",
        code="origin-not-allowed",
    )


def check_local(request: Incoming, origins: Origins) -> None:
    """Refuse a request that a web page of another site makes a browser on this machine send.

    Pages of declared ``origins`` are allowed.
    """
    host = request.headers.get("host", "")
    origin = request.headers.get("origin")
    if not _is_local(host):
        raise RefusedError(
            403,
            "without keys the server answers only requests to 127.0.0.1 and localhost: make a key "
            "by submax keys add",
        )
    if origin is not None and urlsplit(origin).netloc != host and origin not in origins:
        raise RefusedError(
            403,
            "without keys the server answers no pages of other sites: make a key, submax keys add",
        )


@lru_cache(1024)
def _is_local(host: str) -> bool:
    """Whether the header ``Host`` names this machine."""
    return is_loopback(urlsplit(f"//{host}").hostname or "")
