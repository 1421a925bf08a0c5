"""Keys of the interface: only their hashes are kept."""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Literal

import msgspec

from submax.core.checks import one_of, positive
from submax.core.errors import InputError, NotFoundError
from submax.live.declaring.names import check_bandit
from submax.live.store.event import Entry, Event
from submax.live.store.store import Store

STREAM = "keys"
ADDED, REVOKED = "key", "revoked"
SCOPES = ("decide", "reward", "read", "admin")
PREFIX = "submax"
Scope = Literal["decide", "reward", "read", "admin"]


class Key(msgspec.Struct, frozen=True):
    """What a key may do; ``secret`` is the hash of its secret part.

    The secret has 256 random bits, so that a plain hash cannot be reversed by guessing.
    """

    id: str
    secret: str
    scopes: tuple[str, ...]
    bandits: tuple[str, ...] | None = None
    rate: float | None = None

    def allows(self, scope: str, bandit: str | None) -> bool:
        """Whether it may do this; an administrator of all bandits may do everything."""
        if scope not in self.scopes and "admin" not in self.scopes:
            return False
        return self.bandits is None or (bandit is not None and bandit in self.bandits)

    @property
    def may_list(self) -> bool:
        """Whether it may see the names of its bandits."""
        return "read" in self.scopes or "admin" in self.scopes


class Keys:
    """The keys of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = Lock()
        self._keys: dict[str, Key] = {}
        self._heard = 0
        self.needed = False
        """Whether there is a key, or was one: revoking the last one must not let all in."""
        self.follow()

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Key]:
        return iter(list(self._keys.values()))

    def follow(self) -> None:
        """Read what is new."""
        with self._lock:
            while page := self._store.read(STREAM, self._heard):
                for event in page:
                    self._apply(event)
                    self._heard = event.position

    def add(
        self,
        scopes: Sequence[str],
        bandits: Sequence[str] | None = None,
        rate: float | None = None,
    ) -> tuple[str, str]:
        """Make a key: its id and its text, which is kept nowhere."""
        check_key(scopes, bandits, rate)
        number, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        key = Key(
            number, _hash(secret), tuple(scopes), None if bandits is None else tuple(bandits), rate
        )
        entry = Entry(ADDED, msgspec.msgpack.encode(key), f"key {number}")
        self._store.append(STREAM, [entry]).result()
        self.follow()
        return number, f"{PREFIX}.{number}.{secret}"

    def revoke(self, number: str) -> None:
        """Let a key open nothing any more."""
        self.follow()
        if number not in self._keys:
            raise NotFoundError(f"there is no key with the id {number!r:.60}")
        self._store.append(STREAM, [Entry(REVOKED, number.encode())]).result()
        self.follow()

    def find(self, text: str) -> Key | None:
        """The key with this text."""
        prefix, _, rest = text.partition(".")
        number, _, secret = rest.partition(".")
        key = self._keys.get(number) if prefix == PREFIX else None
        if key is None or not secrets.compare_digest(key.secret, _hash(secret)):
            return None
        return key

    def _apply(self, event: Event) -> None:
        if event.kind == ADDED:
            key = msgspec.msgpack.decode(event.body, type=Key)
            self._keys[key.id] = key
            self.needed = True
        elif event.kind == REVOKED:
            self._keys.pop(event.body.decode(), None)


def check_key(
    scopes: Sequence[str], bandits: Sequence[str] | None = None, rate: float | None = None
) -> None:
    """Refuse a key that makes no sense."""
    for scope in scopes:
        one_of("scope", scope, SCOPES)
    if not scopes:
        raise InputError(f"a key needs a scope: one of {', '.join(SCOPES)}")
    for name in bandits or ():
        check_bandit(name)
    if rate is not None:
        positive("rate", rate)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
