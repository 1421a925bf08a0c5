"""Export the log of a bandit as Parquet files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from submax.core.optional import require_extra
from submax.core.serialization import atomic_write
from submax.live.archive.log_reader import LogReader
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.exporting.decision_table import DecisionTable
from submax.live.log.exporting.open_decisions import OpenDecisions
from submax.live.log.exporting.outcome_file import OutcomeFile
from submax.live.log.exporting.reward_table import reward_schema, reward_table
from submax.live.log.ledger import Reader, ledger_of
from submax.live.log.pages.collection_pause import collection_pause
from submax.live.log.pages.log_page import LogPage
from submax.live.log.rows.row_segments import ForgottenSegments
from submax.live.monitoring.rollups.ignored_rollups import IgnoredRollups
from submax.live.store.store import Store


class Export:
    """A table of all decisions of a bandit, with their status and rewards.

    ``status`` is `pending` until the decision matures, then `learned`, or the reason why it was not
    learned from: `held out`, `never activated`, `without reward`, `paused`. ``reward`` is the
    reward that was learned, or the one known so far; if rewards have names or slots,
    ``reward_NAME`` is the part of each, null if it did not come. ``late_rewards`` counts rewards
    that came after the decision had matured.

    The log is read twice, by pages. Memory holds some pages and what the ledger holds: the rewards
    of decisions that have not matured. What became of the other decisions is in a temporary file of
    13 bytes for each event, and 8 more for each part of a reward.
    """

    def __init__(self, store: Store, name: str) -> None:
        require_extra("logs", "an export", "pyarrow")
        projection = SettingsProjection.of(store, name)
        settings, menu = projection.settings, projection.menu
        names = [] if settings.reward_parts is None else settings.reward_parts.names
        self._outcomes = OutcomeFile(len(names))
        self._read: Reader = LogReader(store, name).read_page
        self._ledger = ledger_of(store, name, settings, self._outcomes, ForgottenSegments())
        self._ledger.rollups = IgnoredRollups(slots=0)
        self._ledger.follow()
        collected = self._ledger.collected
        self._decisions = DecisionTable(
            settings.schema(menu),
            menu,
            settings.context,
            OpenDecisions(collected.given.values, collected.activated, collected.given.parts),
            names,
        )

    def write(self, path: Path | str) -> int:
        """Write the decisions as Parquet; return their number."""
        return _write(Path(path), self._decisions.schema, self._decision_tables())

    def write_rewards(self, path: Path | str) -> int:
        """Write every reward as it came, as Parquet; return their number."""
        tables = (reward_table(page, begin, end) for page, begin, end in self._pages())
        return _write(Path(path), reward_schema(), tables)

    def _pages(self) -> Iterator[tuple[LogPage, int, int]]:
        """The events up to the position to which the ledger has read.

        Each page comes with the places of its first event that is new, and of the end.
        """
        after, last = 0, self._ledger.read_position
        while after < last:
            with collection_pause():
                page = self._read(after)
            if not len(page):
                return
            yield page, page.after(after), page.after(last)
            after = int(page.position[-1])

    def _decision_tables(self) -> Iterator[Any]:
        for page, begin, end in self._pages():
            positions = page.position[page.decisions]
            outcomes = self._outcomes.read(positions)
            first, stop = np.searchsorted(page.decisions, [begin, end]).tolist()
            yield self._decisions.build(page, outcomes).slice(first, stop - first)


ROWS_PER_GROUP = 10_000
"""Rows that are written as one group of rows, so that only some pages are in memory."""


def _write(path: Path, schema: Any, tables: Iterator[Any]) -> int:
    """Write tables by groups of rows, so that not all of them are in memory; return the rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    count, rest = 0, schema.empty_table()
    # Numbers and ids hardly ever repeat, so that looking for repetitions takes time for nothing.
    texts = [
        one.name for one in schema if one.name not in ("id", "at") and not _is_number(one.type)
    ]
    with atomic_write(path) as file, pq.ParquetWriter(file, schema, use_dictionary=texts) as writer:
        for table in tables:
            count += table.num_rows
            rest = pa.concat_tables([rest, table])
            # The same rows give the same bytes, whatever the sizes of the pages were.
            while rest.num_rows >= ROWS_PER_GROUP:
                writer.write_table(rest.slice(0, ROWS_PER_GROUP).combine_chunks())
                rest = rest.slice(ROWS_PER_GROUP)
        if count == 0 or rest.num_rows:
            writer.write_table(rest.combine_chunks())
    return count


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(kind))
