"""Sessions of browsers, which hold a cookie instead of a key."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie

from submax.live.store.store import Store
from submax.web.server.access.key import Key
from submax.web.server.access.key_registry import KeyRegistry

COOKIE = "submax_session"
"""The name of the cookie."""
TOKEN_HEADER = "x-csrf-token"
"""The header by which a page proves that a change comes from itself."""
SESSION_SECONDS = 12 * 3600
"""How long a person stays signed in."""
SECRET = "server/session-secret"
"""The blob with the secret by which cookies are signed, so that all processes on a store know
them, and a restart signs nobody out."""


class Sessions:
    """Signs cookies for keys, and finds the key of a cookie.

    A cookie holds the id of the key, the time until which it is valid, and a signature that covers
    both and the hash of the key: when a key is revoked, its sessions end.
    """

    def __init__(
        self, store: Store, keys: KeyRegistry, clock: Callable[[], float] = time.time
    ) -> None:
        self._store, self._keys, self._clock = store, keys, clock
        self._secret = b""

    @property
    def needed(self) -> bool:
        """Whether a request needs a key or a session."""
        return self._keys.needed

    def begin(self, key: Key) -> str:
        """The value of the cookie of a new session."""
        until = int(self._clock()) + SESSION_SECONDS
        return f"{key.id}.{until}.{self._signature(key, until)}"

    def key(self, headers: Mapping[str, str], *, safe: bool) -> Key | None:
        """The key of a request's session, None without a valid one.

        A request that may change something, which is not ``safe``, must carry the session's token.
        """
        cookie = cookie_of(headers)
        key = None if cookie is None else self._signed_by(cookie)
        if key is None or cookie is None:
            return None
        sent = headers.get(TOKEN_HEADER, "")
        if not safe and not hmac.compare_digest(sent.encode(), self.token(cookie).encode()):
            return None
        return key

    def token(self, cookie: str) -> str:
        """The token that a page of this session sends with every change."""
        return hmac.new(self._signing_secret(), f"token {cookie}".encode(), "sha256").hexdigest()

    def _signed_by(self, cookie: str) -> Key | None:
        number, _, rest = cookie.partition(".")
        until, _, signature = rest.partition(".")
        key = self._keys.with_id(number)
        if key is None or not (until.isascii() and until.isdigit()) or len(until) > 12:
            return None
        valid = hmac.compare_digest(signature.encode(), self._signature(key, int(until)).encode())
        return key if valid and self._clock() < int(until) else None

    def _signature(self, key: Key, until: int) -> str:
        signed = f"{key.id} {until} {key.secret}".encode()
        return hmac.new(self._signing_secret(), signed, hashlib.sha256).hexdigest()

    def _signing_secret(self) -> bytes:
        if not self._secret:
            found = self._store.get_blob(SECRET)
            if found is None:
                self._store.put_blob(SECRET, secrets.token_bytes(32))
                # Another process may have written one at the same moment; the last one counts.
                found = self._store.get_blob(SECRET)
            self._secret = found or secrets.token_bytes(32)
        return self._secret


def cookie_of(headers: Mapping[str, str]) -> str | None:
    """The value of the session's cookie in a request, None without one."""
    text = headers.get("cookie")
    if text is None or COOKIE not in text:
        return None
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def cookie_header(value: str, *, secure: bool, seconds: int = SESSION_SECONDS) -> str:
    """The header that gives a browser the cookie, or takes it away if ``seconds`` is 0."""
    text = f"{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}"
    return f"{text}; Secure" if secure else text
