"""A key of the HTTP interface."""

from datetime import UTC, datetime
from typing import Literal

import msgspec

from submax.core.errors import InputError

SCOPES = ("decide", "reward", "read", "admin")
BROWSER_SCOPES = ("decide", "reward")
"""The scopes that a key in a web page may have."""
KEY_PARAMETER = "key"
"""The query parameter that holds a key for browsers."""
Scope = Literal["decide", "reward", "read", "admin"]
MAX_NAME_LENGTH = 80
"""Characters in the name of a key, which is printed in lists."""


class Key(msgspec.Struct, frozen=True):
    """What a key allows: ``scopes`` on ``bandits`` (None: all), ``rate`` requests a second.

    ``secret`` is the hash of the secret part of its text. The secret has 256 random bits, so that a
    plain hash cannot be reversed by guessing. ``name`` is for people. ``expires`` is the time, in
    seconds since the epoch, from which the key is refused; None: never. A ``browser`` key is part
    of web pages, so that everybody can read it: it may decide and reward, and nothing else.
    """

    id: str
    secret: str
    scopes: tuple[str, ...]
    bandits: tuple[str, ...] | None = None
    rate: float | None = None
    name: str = ""
    expires: float | None = None
    browser: bool = False

    def allows(self, scope: str, bandit: str | None) -> bool:
        """Whether the key allows a scope on a bandit; the scope ``admin`` includes all others."""
        if scope not in self.scopes and "admin" not in self.scopes:
            return False
        return self.bandits is None or (bandit is not None and bandit in self.bandits)

    def has_expired(self, now: float) -> bool:
        """Whether the key is no longer valid at a time."""
        return self.expires is not None and now >= self.expires

    @property
    def may_list(self) -> bool:
        """Whether the key may list the names of its bandits."""
        return "read" in self.scopes or "admin" in self.scopes


def check_name(name: str) -> None:
    """Refuse a name that would not be readable in a list."""
    if len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise InputError(
            f"the name of a key was {name!r:.60}, and up to {MAX_NAME_LENGTH} printable characters "
            "are allowed: give a shorter one"
        )


def parsed_time(text: str, now: float) -> float:
    """The seconds since the epoch of a date or a time in the future, in the form of ISO 8601.

    A date means its begin, and a time without a zone is in UTC.

    >>> parsed_time("1970-01-02", now=0.0), parsed_time("1970-01-01T01:00+01:00", now=-1.0)
    (86400.0, 0.0)
    """
    try:
        found = datetime.fromisoformat(text)
        seconds = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"expires was {text!r:.60}, and a date or a time is allowed: give one such as "
            "2030-01-31 or 2030-01-31T12:00:00Z",
            parameter="expires",
        ) from error
    if seconds <= now:
        raise InputError(
            f"expires was {text!r:.60}, which is over: give a date or a time in the future",
            parameter="expires",
        )
    return seconds


def time_text(seconds: float) -> str:
    """A time in the form of ISO 8601, to the second.

    >>> time_text(86400.0)
    '1970-01-02T00:00:00Z'
    """
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
