"""The web sites whose pages may call the server from a browser."""

import re
from collections.abc import Iterable

from submax.core.errors import InputError

ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")
"""An origin as browsers send it: scheme and host in small letters, and a port if it is unusual."""
METHODS, HEADERS = "POST", "authorization, content-type, x-request-id"
"""What a page of a declared origin may send."""
EXPOSED = "x-request-id, retry-after"
"""Headers of an answer that a page may read, beside those that it may always read."""
PREFLIGHT_SECONDS = 7200
"""How long a browser remembers the answer to a preflight: at most two hours in Chromium."""


class Origins:
    """The origins that were declared for browsers; see https://fetch.spec.whatwg.org/#http-cors.

    >>> origins = Origins(["https://shop.example"])
    >>> "https://shop.example" in origins, "https://other.example" in origins
    (True, False)
    """

    def __init__(self, declared: Iterable[str] = ()) -> None:
        self._declared = frozenset(map(checked_origin, declared))

    def __contains__(self, origin: str) -> bool:
        return origin in self._declared

    def __len__(self) -> int:
        return len(self._declared)

    @staticmethod
    def answer_headers(origin: str) -> dict[str, str]:
        """The headers by which a browser lets a page of a declared origin read an answer."""
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": EXPOSED,
            "Vary": "Origin",
        }

    @staticmethod
    def preflight_headers(origin: str) -> dict[str, str]:
        """The headers by which a browser lets a page of a declared origin send a request."""
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Allow-Methods": METHODS,
            "Access-Control-Allow-Headers": HEADERS,
            "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
            "Vary": "Origin",
        }


def checked_origin(origin: str) -> str:
    """Return the origin without a slash at its end; refuse what no browser would send."""
    found = origin.strip().rstrip("/").lower()
    if not ORIGIN.fullmatch(found):
        raise InputError(
            f"the origin was {origin!r:.80}, and an origin has a scheme, a host and perhaps a "
            "port: give one such as https://shop.example or http://localhost:3000"
        )
    return found
