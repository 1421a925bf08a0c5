"""Reads the file that declares which values a log may have."""

import tomllib
from pathlib import Path
from typing import Any

from submax.core.checks import one_of
from submax.core.errors import InputError

DECLARED_KEYS = ("actions", "action_features", "context", "rewards")
"""Keys that the file may have: the arguments of ``Log.read`` with these names."""


def read_declaration(path: Path) -> dict[str, Any]:
    """Return the arguments of ``Log.read`` that a TOML file has."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}") from error
    for key in table:
        one_of(f"key in {path.name}:", key, DECLARED_KEYS)
    return table
