"""Lets a program observe how long work takes, without a dependency of the code that does it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Begin = Callable[[str, Mapping[str, Any]], AbstractContextManager[Any]]
"""Begins a span with a name and attributes; the span ends with the block."""


class Spans:
    """Whoever observes spans; nobody, unless ``observe`` was called."""

    def __init__(self) -> None:
        self._begin: Begin | None = None

    def observe(self, begin: Begin | None) -> None:
        """Call ``begin`` for every span from now on; None: observe no more."""
        self._begin = begin

    def span(self, name: str, **attributes: Any) -> AbstractContextManager[Any]:
        """Work with a name, for a ``with`` block; this costs next to nothing if nobody observes.

        >>> with SPANS.span("submax.example", rows=3):
        ...     pass
        """
        return UNOBSERVED if self._begin is None else self._begin(name, attributes)


UNOBSERVED: AbstractContextManager[Any] = nullcontext()
SPANS = Spans()
"""The spans of this process: writes to stores, and fits of versions."""
