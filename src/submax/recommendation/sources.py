"""Tells logs from stores, and reads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submax.core.errors import InputError
from submax.evaluation.logs.log import Log
from submax.live.open import POSTGRES, SERVERS
from submax.recommendation.observed import Observed
from submax.recommendation.observed_log import ObservedLog
from submax.recommendation.observed_store import ObservedStore

SQLITE = b"SQLite format 3\x00"
"""The first bytes of every file of SQLite."""


def opened_source(
    source: str | Path | Log, bandit: str | None, reading: Mapping[str, Any]
) -> Observed:
    """Read a log, or a bandit of a store."""
    if isinstance(source, Log):
        return ObservedLog(source, "log.parquet")
    if is_store(source):
        return ObservedStore(str(source), bandit)
    return ObservedLog(Log.read(source, **reading), str(source))


def is_store(source: str | Path) -> bool:
    """Whether the place is a database of PostgreSQL or a file of SQLite."""
    text = str(source)
    if text.startswith(SERVERS):
        raise InputError(
            f"{text!r} is the address of a server, and a log or a store is needed here: give the "
            "file or database of the store, or the file that submax export writes",
            code="not-a-log",
        )
    if text.startswith(POSTGRES):
        return True
    path = Path(source)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE
