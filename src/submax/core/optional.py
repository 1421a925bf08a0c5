"""What is imported or observed only on demand: optional dependencies, lazy names, spans."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any

from submax.core.errors import MissingExtraError


def is_installed(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The package that contains the module is not installed.
        return False


def missing_extra(extra: str, what: str, *modules: str) -> str:
    """Return a sentence that names the extra to install; empty if all modules are installed."""
    missing = [module for module in modules if not is_installed(module)]
    if not missing:
        return ""
    return f'{what} needs {" and ".join(missing)}: pip install "submax[{extra}]"'


def require_extra(extra: str, what: str, *modules: str) -> None:
    """Raise a ``MissingExtraError`` unless all modules of an optional extra are installed."""
    if sentence := missing_extra(extra, what, *modules):
        raise MissingExtraError(sentence)


def require_module(what: str, module: str) -> None:
    """Raise a ``MissingExtraError`` unless a package is installed that no extra contains."""
    if not is_installed(module):
        raise MissingExtraError(
            f"{what} needs {module}, which is not installed: pip install {module}"
        )


def lazy_names(
    package: str, home: Mapping[str, str], listed: Iterable[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package; ``home`` has the module of each name.

    The names in ``listed``, by default all of them, are those of ``dir``.

    >>> find, names = lazy_names("shapes", {"sqrt": "math"})
    >>> find("sqrt")(9.0), names()
    (3.0, ['sqrt'])
    """

    def find(name: str) -> Any:
        if name in home:
            return getattr(importlib.import_module(home[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find, lambda: sorted(listed or home)


Begin = Callable[[str, Mapping[str, Any]], AbstractContextManager[Any]]
"""Begins a span with a name and attributes; the span ends with the block."""
UNOBSERVED: AbstractContextManager[Any] = nullcontext()


class Spans:
    """Named parts of work, which an observer may trace, as OpenTelemetry does."""

    def __init__(self) -> None:
        self._begin: Begin | None = None

    def observe(self, begin: Begin | None) -> None:
        """Call ``begin`` for every span from now on; None: observe no more."""
        self._begin = begin

    def span(self, name: str, **attributes: Any) -> AbstractContextManager[Any]:
        """Return a span for a ``with`` block; it costs next to nothing without an observer."""
        return UNOBSERVED if self._begin is None else self._begin(name, attributes)


SPANS = Spans()
"""The spans of this process: writes to stores, and fits of versions."""
