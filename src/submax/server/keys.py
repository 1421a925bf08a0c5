"""Keys of the HTTP interface, and the sessions of people who signed in with one.

The store holds hashes of the secrets of keys and of the tokens of sessions. Both have 256 random
bits, so a plain hash cannot be reversed by guessing, and whoever reads a backup can use neither.
"""

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from threading import Lock
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from submax.bandit.declaring import PYTHON, Who, audit_statement
from submax.bandit.store import Store
from submax.bandit.tables import Statement
from submax.core.errors import InputError, NotFoundError

Scope = Literal["decide", "reward", "read", "admin"]
SCOPES: tuple[str, ...] = get_args(Scope)
BROWSER_SCOPES = ("decide", "reward")  # those that a key in a web page may have
MAX_NAME_LENGTH = 80
PREFIX = "submax"  # of the text of every key, by which scanners for leaked secrets can find it
SESSION_SECONDS = 12 * 3600  # how long a person stays signed in
# An origin as browsers send it: scheme and host in small letters, and a port if it is unusual.
ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?|https?://\[[0-9a-f:]+\](:[0-9]{1,5})?")


class Key(msgspec.Struct, frozen=True):
    """What a key allows: ``scopes`` on ``bandits`` (None: all), ``rate`` requests a second.

    From ``expires`` on, a Unix time, the key is refused; None: never. A key with ``origins`` is
    part of the pages of these sites, where anyone can read it: it may decide and reward, and
    nothing else. It was ``used`` last at a Unix time, if ever.
    """

    id: str
    scopes: tuple[str, ...]
    bandits: tuple[str, ...] | None = None
    rate: float | None = None
    name: str = ""
    created: float = 0.0
    expires: float | None = None
    origins: tuple[str, ...] | None = None
    used: float | None = None

    def allows(self, scope: str, bandit: str | None) -> bool:
        if scope not in self.scopes and "admin" not in self.scopes:
            return False
        return self.bandits is None or (bandit is not None and bandit in self.bandits)


FIELDS = Key.__struct_fields__


class NewKey(NamedTuple):
    """The id of a new key and its text, which is stored nowhere."""

    id: str
    key: str


class Keys:
    """The valid keys of a store, in memory.

    ``follow`` reads those that other processes made or revoked; a server calls it every second.
    ``needed``: there is or was a key, so a request needs one. Revoking the last one opens nothing.
    """

    def __init__(self, store: Store, clock: Callable[[], float] = time.time) -> None:
        self._store, self._clock, self._lock = store, clock, Lock()
        self._keys: dict[str, tuple[Key, str]] = {}
        self._uses: dict[str, float] = {}
        self.needed = False
        self.follow()

    def __iter__(self) -> Iterator[Key]:
        for key, _ in list(self._keys.values()):
            used = max(key.used or 0.0, self._uses.get(key.id, 0.0))
            yield msgspec.structs.replace(key, used=used) if used else key

    def follow(self) -> None:
        with self._lock:
            sql = f"select {', '.join(FIELDS)}, secret from key where revoked is null"
            self._keys = {row[0]: (_key(row[:-1]), row[-1]) for row in self._store.select(sql)}
            if not self.needed:
                ((count,),) = self._store.select("select count(*) from key")
                self.needed = count > 0

    def add(
        self,
        scopes: Sequence[str],
        bandits: Sequence[str] | None = None,
        rate: float | None = None,
        *,
        name: str = "",
        expires: float | None = None,
        origins: Sequence[str] | None = None,
        who: Who = PYTHON,
    ) -> NewKey:
        if not name.isprintable():
            raise InputError(
                f"the name of a key was {name!r:.60}: give printable characters", parameter="name"
            )
        if origins is not None and not set(scopes) <= set(BROWSER_SCOPES):
            raise InputError(
                f"a key with origins cannot have the scopes {', '.join(scopes)}, because anyone "
                f"can read it in the page: give only {' and '.join(BROWSER_SCOPES)}",
                parameter="scopes",
            )
        number, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        values = {
            "id": number,
            "secret": _hash(secret),
            "scopes": _json(list(scopes)),
            "bandits": _json(bandits and list(bandits)),
            "rate": rate,
            "name": name,
            "created": self._clock(),
            "expires": expires,
            "origins": _json(origins and [checked_origin(one) for one in origins]),
        }
        names, parameters = ", ".join(values), ", ".join(f":{word}" for word in values)
        insert = Statement(f"insert into key ({names}) values ({parameters})", values)
        detail = ", ".join(f"{word}={values[word]}" for word in ("name", "scopes", "bandits"))
        self._store.execute([insert, audit_statement(self._store, number, who, "add-key", detail)])
        self.follow()
        return NewKey(number, f"{PREFIX}.{number}.{secret}")

    def revoke(self, number: str, who: Who = PYTHON) -> None:
        self.follow()
        if number not in self._keys:
            raise NotFoundError(
                f"there is no key with the id {number!r:.60}: submax keys list shows all ids"
            )
        values = {"id": number, "at": self._clock()}
        self._store.execute(
            [
                Statement("update key set revoked = :at where id = :id", values),
                Statement("delete from session where key = :id", values),
                audit_statement(self._store, number, who, "revoke-key"),
            ]
        )
        self.follow()

    def find(self, text: str) -> Key | None:
        """The key with this text; None if it is unknown, revoked or expired."""
        prefix, _, rest = text.partition(".")
        number, _, secret = rest.partition(".")
        key = self.with_id(number) if prefix == PREFIX else None
        _, hashed = self._keys.get(number, (None, ""))
        return key if hmac.compare_digest(hashed, _hash(secret)) else None

    def with_id(self, number: str) -> Key | None:
        """The key with this id; None if it is unknown, revoked or expired."""
        key, _ = self._keys.get(number, (None, ""))
        valid = key is not None and (key.expires is None or self._clock() < key.expires)
        return key if valid else None

    def origins(self) -> set[str]:
        """All sites whose pages may use a key."""
        return {origin for key, _ in list(self._keys.values()) for origin in key.origins or ()}

    def note_use(self, number: str) -> None:
        """Note that a key is used now; ``write_uses`` puts it into the store."""
        self._uses[number] = self._clock()

    def write_uses(self) -> None:
        """Write when keys were used last, so a request costs no write."""
        uses, self._uses = self._uses, {}
        sql = "update key set used = :at where id = :id and (used is null or used < :at)"
        statements = [Statement(sql, {"id": number, "at": at}) for number, at in uses.items()]
        if statements:
            self._store.execute(statements)
            self.follow()


def _key(row: Sequence[Any]) -> Key:
    table = dict(zip(FIELDS, row, strict=True))
    for word in ("scopes", "bandits", "origins"):
        table[word] = None if table[word] is None else tuple(msgspec.json.decode(table[word]))
    return Key(**table)


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def checked_origin(origin: str) -> str:
    """Return the origin without a slash at its end; refuse what no browser would send."""
    checked = origin.strip().rstrip("/").lower()
    if not ORIGIN.fullmatch(checked):
        raise InputError(
            f"{origin!r:.80} is not an origin: give a scheme, a host and optionally a port, such "
            "as https://shop.example or http://localhost:3000",
            parameter="origins",
        )
    return checked


def unix_time(word: str, text: str) -> float:
    """The Unix time of a date or a time in ISO 8601; without a zone it is UTC.

    >>> unix_time("expires", "1970-01-02")
    86400.0
    """
    try:
        parsed = datetime.fromisoformat(text)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"{word} was {text!r:.60}: give a date or a time, such as 2030-01-31 or "
            "2030-01-31T12:00:00Z",
            parameter=word,
        ) from error


def time_text(seconds: float) -> str:
    """A time in the form of ISO 8601, to the second.

    >>> time_text(86400.0)
    '1970-01-02T00:00:00Z'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"


class Sessions:
    """Sessions in the store, by hashes of their tokens, so all processes on the store know them.

    A session ends when its time is over, when the person signs out, and when its key is revoked.
    """

    def __init__(self, store: Store, keys: Keys, clock: Callable[[], float] = time.time) -> None:
        self._store, self._keys, self._clock = store, keys, clock

    def begin(self, key: Key) -> str:
        token, now = secrets.token_urlsafe(32), self._clock()
        row = {"hash": _hash(token), "key": key.id, "until": now + SESSION_SECONDS, "now": now}
        insert = "insert into session (hash, key, until) values (:hash, :key, :until)"
        delete = Statement("delete from session where until < :now", row)
        self._store.execute([delete, Statement(insert, row)])
        return token

    def find(self, token: str) -> Key | None:
        """The key of the session with this token; None if it has ended."""
        sql = "select key from session where hash = :hash and until > :now"
        rows = self._store.select(sql, hash=_hash(token), now=self._clock())
        return self._keys.with_id(rows[0][0]) if rows else None

    def end(self, token: str) -> None:
        ended = Statement("delete from session where hash = :hash", {"hash": _hash(token)})
        self._store.execute([ended])
