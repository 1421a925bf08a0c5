"""Hints for names that somebody looks for in ``submax`` and that are elsewhere."""

import difflib
import importlib
import importlib.util
import types
from collections.abc import Iterable

from submax.core.errors import MissingExtraError

PACKAGES = (
    "policies",
    "strategies",
    "estimators",
    "environments",
    "simulation",
    "evaluation",
    "testing",
)
"""The packages that export classes and functions; they are searched in this order."""

SIMILARITY = 0.7
"""The least similarity of a suggested name, by difflib: `Bernouli` has 0.94, unlike words 0.6."""


def hint_for(name: str, known: Iterable[str]) -> str:
    """Return the end of an error message: where ``name`` is, or a similar name.

    ``known`` are the names that ``submax`` has. The result is empty if nothing is similar.

    >>> hint_for("SubMax", [])
    ': write from submax.strategies import SubMax'
    >>> hint_for("Bandits", ["Bandit", "Arms"])
    ': did you mean submax.Bandit?'
    """
    for package in PACKAGES:
        if _exports(f"submax.{package}", name):
            return f": write from submax.{package} import {name}"
    if importlib.util.find_spec(f"submax.{name}") is not None:
        return f": write import submax.{name}"
    return _similar(name, list(known))


def _similar(name: str, known: list[str]) -> str:
    """Return a name that differs in its case, a method of a bandit, or a similar name."""
    close = [one for one in known if one.lower() == name.lower()]
    if not close and hasattr(importlib.import_module("submax.live.bandits.bandit").Bandit, name):
        close = [f"Bandit.{name}"]
    close = close or difflib.get_close_matches(name, known, n=1, cutoff=SIMILARITY)
    return f": did you mean submax.{close[0]}?" if close else ""


def _exports(package: str, name: str) -> bool:
    """Whether a package exports something of this name that submax defines."""
    try:
        found = getattr(importlib.import_module(package), name, None)
    except MissingExtraError:
        # The package has the name, and an extra is needed to import it.
        return True
    if found is None or isinstance(found, types.ModuleType):
        return False
    return str(getattr(found, "__module__", "")).startswith("submax.")
