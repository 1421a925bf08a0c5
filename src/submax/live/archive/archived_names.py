"""The ids and other texts of the events of a segment."""

from typing import Any

import numpy as np

from submax.live.archive.segments.id_halves import identifier_from
from submax.live.log.pages.page_names import PageNames, Places
from submax.live.log.pages.uuid_texts import uuid_texts


class ArchivedNames(PageNames):
    """The texts of the events of a table with the columns of a segment, none of them irregular.

    ``decision_of`` is the place of the decision in the same table that an event is about; −1 if the
    event has its own id.
    """

    def __init__(self, table: Any, decision_of: Places) -> None:
        self._table, self._decision_of = table, decision_of

    def identifiers(self, places: Places) -> list[str]:
        decisions = self._decision_of[places]
        chosen = self._table.select(["id", "id_high", "id_low"]).take(
            np.where(decisions < 0, places, decisions)
        )
        columns = (chosen[name].to_pylist() for name in chosen.column_names)
        return [
            identifier_from(high, low) if high is not None else text or ""
            for text, high, low in zip(*columns, strict=True)
        ]

    def sources(self, places: Places) -> list[str]:
        sources: list[str] = self._table["source"].take(places).to_pylist()
        return sources

    def reward_keys(self, places: Places) -> list[str]:
        keys: list[str] = self._table["reward_key"].take(places).to_pylist()
        return keys

    def decision_array(self, places: Places) -> Any:
        chosen = self._table.select(["id_high", "id_low"]).take(places)
        if chosen["id_high"].null_count:
            return super().decision_array(places)
        halves = np.empty((len(places), 2), ">i8")
        halves[:, 0], halves[:, 1] = chosen["id_high"].to_numpy(), chosen["id_low"].to_numpy()
        return uuid_texts(halves.view(np.uint8).reshape(len(places), 16))
