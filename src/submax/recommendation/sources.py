"""Tells logs from stores, and reads them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from submax.core.errors import InputError
from submax.evaluation.logs.log import Log
from submax.live.bandits.open import POSTGRES, SERVERS
from submax.recommendation.log_file import LogFile
from submax.recommendation.observed import Observed
from submax.recommendation.observed_log import ObservedLog
from submax.recommendation.observed_store import ObservedStore
from submax.recommendation.unused_options import refuse_unused

SQLITE = b"SQLite format 3\x00"
"""The first bytes of every file of SQLite."""


def opened_source(
    source: str | Path | Log,
    bandit: str | None,
    columns: Mapping[str, Any],
    declare: Path | None,
) -> Observed:
    """Read a log, or a bandit of a store; options that the source does not use are refused."""
    if isinstance(source, Log):
        refuse_unused("a Log", bandit=bandit, columns=columns, declare=declare)
        return ObservedLog(source, None)
    if is_store(source):
        refuse_unused("a store", columns=columns, declare=declare)
        return ObservedStore(str(source), bandit)
    refuse_unused("the file of a log", bandit=bandit)
    file = LogFile(str(source), columns, declare)
    return ObservedLog(file.read(), file)


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
