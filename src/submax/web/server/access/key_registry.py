"""All keys of a store; the store holds only hashes of their secrets."""

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Lock

import msgspec

from submax.bandit.names import check_bandit
from submax.core.checks import one_of, positive
from submax.core.decoding import known_type
from submax.core.errors import InputError, NotFoundError
from submax.live.store.event import Entry, Event
from submax.live.store.store import Store
from submax.web.server.access.key import BROWSER_SCOPES, SCOPES, Key, check_name

STREAM = "keys"
"""The stream of a store in which keys are added and revoked."""
ADDED, REVOKED = "key", "revoked"
"""The kinds of events in this stream."""
PREFIX = "submax"
"""The first part of the text of every key, by which scanners for leaked secrets can find it."""


class KeyRegistry:
    """The valid keys of a store, read from its stream of keys."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock = store, clock
        self._lock = Lock()
        self._keys: dict[str, Key] = {}
        self._read_position = 0
        self.needed = False
        """Whether a request needs a key: if there is or was one. Revoking the last key must not
        open the server to everybody."""
        self.follow()

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._keys.values()))

    def follow(self) -> None:
        """Read keys that were added or revoked since the last call."""
        with self._lock:
            while page := self._store.read(STREAM, self._read_position):
                for event in page:
                    self._apply(event)
                    self._read_position = event.position

    def add(
        self,
        scopes: Sequence[str],
        bandits: Sequence[str] | None = None,
        rate: float | None = None,
        *,
        name: str = "",
        expires: float | None = None,
        browser: bool = False,
    ) -> tuple[str, str]:
        """Make a key; return its id and its text, which is stored nowhere."""
        check_key(scopes, bandits, rate, name, browser=browser)
        number, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        limited_to = None if bandits is None else tuple(bandits)
        key = Key(number, _hash(secret), tuple(scopes), limited_to, rate, name, expires, browser)
        entry = Entry(ADDED, msgspec.msgpack.encode(key), f"key {number}")
        self._store.append(STREAM, [entry]).result()
        self.follow()
        return number, f"{PREFIX}.{number}.{secret}"

    def revoke(self, number: str) -> None:
        """Revoke a key."""
        self.follow()
        if number not in self._keys:
            raise NotFoundError(
                f"there is no key with the id {number!r:.60}: submax keys list prints all ids"
            )
        self._store.append(STREAM, [Entry(REVOKED, number.encode())]).result()
        self.follow()

    def find(self, text: str) -> Key | None:
        """The key with this text; None if it is unknown, revoked or expired."""
        prefix, _, rest = text.partition(".")
        number, _, secret = rest.partition(".")
        key = self._keys.get(number) if prefix == PREFIX else None
        if key is None or not secrets.compare_digest(key.secret, _hash(secret)):
            return None
        return None if key.has_expired(self._clock()) else key

    def with_id(self, number: str) -> Key | None:
        """The key with this id; None if it is unknown, revoked or expired."""
        key = self._keys.get(number)
        return None if key is None or key.has_expired(self._clock()) else key

    def _apply(self, event: Event) -> None:
        if event.kind == ADDED:
            key = msgspec.msgpack.decode(event.body, type=known_type(Key))
            self._keys[key.id] = key
            self.needed = True
        elif event.kind == REVOKED:
            self._keys.pop(event.body.decode(), None)


def check_key(
    scopes: Sequence[str],
    bandits: Sequence[str] | None = None,
    rate: float | None = None,
    name: str = "",
    *,
    browser: bool = False,
) -> None:
    """Refuse unknown scopes, names that no bandit or key can have, and rates of 0 or less.

    A key for browsers may have only those scopes that everybody may have.
    """
    check_name(name)
    for scope in scopes:
        one_of("scope", scope, SCOPES)
    if not scopes:
        raise InputError(f"a key needs a scope: one of {', '.join(SCOPES)}", parameter="scopes")
    if browser and not set(scopes) <= set(BROWSER_SCOPES):
        raise InputError(
            f"a key for browsers was asked for with the scopes {', '.join(scopes)}, and everybody "
            f"can read it in the page: give only the scopes {' and '.join(BROWSER_SCOPES)}",
            parameter="scopes",
        )
    for name in bandits or ():
        check_bandit(name)
    if rate is not None:
        positive("rate", rate)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
