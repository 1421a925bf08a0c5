"""The two phases of a request on its way in, and the limits of each."""

from dataclasses import dataclass

LARGEST_HEAD = 32_000
"""Bytes of a request line with its headers: far more than a key and a long path need."""
HEAD_SECONDS = 10.0
"""How long a head may take from the opening of the connection, or from its first byte, to its
end: a head fits into a few packets."""
LARGEST_TRANSFER = 8_000_000
"""Bytes after the head, with the sizes of chunks and with trailers. The largest body, 1 MB, in
chunks of one byte has 6 MB."""
BODY_SECONDS = 30.0
"""How long a body may take: 1 MB at 35 kB a second."""


@dataclass(frozen=True)
class Phase:
    """A part of a request: what is allowed, and the answer to a client that exceeds it.

    ``most_bytes`` and ``seconds`` are for the whole part. ``too_large`` is the status of the
    answer to a part that is too large, ``advice`` says what the client can do.
    """

    name: str
    most_bytes: int
    seconds: float
    too_large: int
    advice: str


HEAD = Phase("head", LARGEST_HEAD, HEAD_SECONDS, 431, "send a shorter path and fewer headers")
BODY = Phase("body", LARGEST_TRANSFER, BODY_SECONDS, 413, "send several smaller requests")
