"""A page of a log from a segment of the archive."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.live.archive.archived_decisions import ArchivedDecisions
from submax.live.archive.archived_names import ArchivedNames
from submax.live.log.pages.log_page import LogPage, places_of
from submax.live.store.columns.event_kinds import (
    ACTIVATION_KIND,
    DECISION_KIND,
    REWARD_KIND,
    kind_numbers,
)


def archived_page(table: Any) -> LogPage | None:
    """Return the events of a table with the columns of a segment, without restoring each of them.

    None if some events cannot be described by columns, and must be restored. Events that say
    nothing about decisions, such as pins, need not be described.
    """
    position = table["position"].to_numpy()
    kinds = table["kind"].combine_chunks().dictionary_encode()
    numbers = kind_numbers(kinds.dictionary.to_pylist())
    kind = numbers[kinds.indices.to_numpy()] if len(numbers) else np.zeros(0, np.uint8)
    of_decisions = np.isin(kind, [DECISION_KIND, REWARD_KIND, ACTIVATION_KIND])
    if (of_decisions & _is_irregular(table)).any():
        return None
    back = table["back"].fill_null(0).to_numpy()
    about = np.where(back == 0, 0, position - back)
    decisions, feedback, _ = places_of(kind)
    place = np.searchsorted(position, about)
    is_here = (place < len(position)) & (back > 0)
    place = np.where(is_here, place, 0)
    is_here &= (position[place] == about) & np.isin(place, decisions)
    names = ArchivedNames(table, np.where(is_here, place, -1))
    return LogPage(
        position,
        table["time"].to_numpy().view(np.float64),
        kind,
        about,
        table["value"].to_numpy(),
        # Rewards with parts are stored as they are, and make the page one that is restored.
        {},
        decisions,
        feedback,
        ArchivedDecisions(table.take(decisions) if len(decisions) < len(table) else table),
        names,
    )


def _is_irregular(table: Any) -> NDArray[np.bool_]:
    """Return which events are stored as they are, because columns cannot describe them."""
    has_body = table["body"].is_valid().to_numpy()
    irregular: NDArray[np.bool_] = has_body | table["irregular"].fill_null(False).to_numpy()
    return irregular
