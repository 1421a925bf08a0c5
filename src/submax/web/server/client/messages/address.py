"""Where a bandit is served, and the headers of every request to it."""

from typing import NamedTuple
from urllib.parse import quote, urlsplit

from submax.bandit.names import check_bandit
from submax.core.errors import InputError


class Address(NamedTuple):
    """The server's host and port, the path of the bandit, and the headers of every request.

    ``place`` is host and port as they are written in an address, for the header Host and for
    messages.
    """

    secure: bool
    host: str
    port: int
    place: str
    path: str
    headers: dict[str, str]

    @classmethod
    def of(cls, address: str, bandit: str | None, key: str | None) -> "Address":
        """Read an address such as http://127.0.0.1:8000; wrong values are refused.

        Without a bandit, the path is that of the server.
        """
        try:
            parts = urlsplit(address)
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host or parts.scheme not in ("http", "https") or port == 0:
            raise InputError(
                f"the address {address!r} is no address of a server: write it like "
                "http://127.0.0.1:8000",
                parameter="address",
            )
        if bandit is not None:
            check_bandit(bandit)
        secure = parts.scheme == "https"
        return cls(
            secure,
            host,
            port or (443 if secure else 80),
            parts.netloc.rpartition("@")[2],
            parts.path.rstrip("/") + (f"/bandits/{quote(bandit)}" if bandit else ""),
            _headers(key),
        )


def _headers(key: str | None) -> dict[str, str]:
    if key is None:
        return {"Content-Type": "application/json"}
    if not (key.isascii() and key.isprintable()):
        raise InputError(
            "the key has characters that no key has: give the whole text submax.….… that "
            "submax keys add has printed",
            parameter="key",
        )
    return {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
