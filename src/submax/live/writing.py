"""Something to be written, and the answer once it is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from submax.live.event import Entry, Written

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Writing(Generic[Answer]):
    """Entries for a stream; whoever writes them, waiting or not, makes the ``answer`` of them."""

    stream: str
    entries: list[Entry]
    answer: Callable[[list[Written]], Answer]
