"""Compares a page of a new segment with the events in the store."""

import numpy as np
from numpy.typing import NDArray

from submax.live.archive.archived_page import archived_page
from submax.live.archive.page_table import PageTable
from submax.live.archive.segments.segment_reader import SegmentReader
from submax.live.log.decisions.decision_columns import DecisionColumns
from submax.live.log.pages.log_page import LogPage
from submax.live.store.columns.sealed_columns import SealedColumns

FIELDS = ("action", "propensity", "version", "activated", "holdout", "paused", "group")
"""The fields of decisions that are arrays of numbers."""


def holds_page(reader: SegmentReader, number: int, page: SealedColumns, tables: PageTable) -> bool:
    """Whether a page of a segment holds exactly the events of a page of the store.

    Events of the usual form are compared by columns: the table that was read with the table that
    these events give, and the decisions as readers of the archive decode them with the decisions
    as readers of the store do. All other events are restored and compared one by one.
    """
    expected, found = tables.of(page), reader.table(number)
    if expected is None:
        return reader.page(number) == page.listed()
    archived = archived_page(found)
    stored = LogPage.of(page.columns)
    return bool(
        page.whole.all()
        and found.equals(expected)
        and archived is not None
        and _same(archived.position, stored.position)
        and _same(archived.at, stored.at)
        and _same(archived.kind, stored.kind)
        and _same(archived.about_position, stored.about_position)
        and _same(archived.value[stored.feedback], stored.value[stored.feedback])
        and _same_decisions(archived.made, stored.made)
    )


def _same_decisions(archived: DecisionColumns, stored: DecisionColumns) -> bool:
    fields = [_same(getattr(archived, name), getattr(stored, name)) for name in FIELDS]
    numbers, choices = archived.eligible()
    expected, of_store = stored.eligible()
    return (
        all(fields)
        and archived.unit.tolist() == stored.unit.tolist()
        and [choices[one] for one in numbers] == [of_store[one] for one in expected]
        and bool(archived.probabilities().equals(stored.probabilities()))
    )


def _same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    """Whether two arrays have the same bits."""
    return one.shape == other.shape and one.astype(other.dtype).tobytes() == other.tobytes()
