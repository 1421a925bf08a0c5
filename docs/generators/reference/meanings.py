"""What the generated pages say beside what is read from the code, from meanings.toml."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("meanings.toml")
TABLES = tomllib.loads(FILE.read_text(encoding="utf-8"))


def meanings(table: str, names: Iterable[str]) -> dict[str, Any]:
    """Return a table of the file, which must have exactly the names that the code has."""
    found: dict[str, Any] = TABLES[table]
    if different := sorted({*names} ^ {*found}):
        raise SystemExit(
            f"the table {table} of {FILE.name} lacks, or has in vain: {', '.join(different)}"
        )
    return found
