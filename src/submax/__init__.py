"""submax: bandit decisions by reward-conditioned policies and generalized marginalization.

The public names are in ``__init__.pyi``; a name is imported when it is first used.
"""

import importlib
import sys
from typing import Any

_STUB = __loader__.get_data(f"{__file__}i").decode()
_IMPORTS = [line.split() for line in _STUB.splitlines() if line.startswith("from ")]
_HOMES = {name: (module, inside) for _, module, _, inside, _, name, *_ in _IMPORTS}
"""The module of each public name, and its name there."""

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        # With name and obj, Python's traceback suggests the nearest name.
        raise AttributeError(
            f"module 'submax' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )
    module, inside = _HOMES[name]
    if module == "submax":
        return importlib.import_module(f"submax.{name}")
    return getattr(importlib.import_module(module), inside)


def __dir__() -> list[str]:
    return sorted(__all__)
