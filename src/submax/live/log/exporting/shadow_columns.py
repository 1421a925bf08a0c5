"""What a shadow would have done, as columns of an export."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from submax.live.log.bandits import shadow_stream
from submax.live.log.records import body_of
from submax.live.monitoring.shadow.shadow_records import OPINIONS, Opinions
from submax.live.store.store import Store
from submax.schema.actions import ARMS, ActionSpec, EncodedAction


class _Opinion(NamedTuple):
    version: int
    chance: float
    choice: EncodedAction


class ShadowColumns:
    """Reads opinions in the order of decisions; if there never was a shadow, it has no columns."""

    def __init__(self, store: Store, name: str, menu: ActionSpec) -> None:
        self._store, self._stream, self._menu = store, shadow_stream(name), menu
        self._read, self._found = 0, dict[int, _Opinion]()
        self._exists = bool(store.read(self._stream, limit=1))

    def fields(self) -> list[tuple[str, Any]]:
        """The names and types of the columns."""
        import pyarrow as pa

        if not self._exists:
            return []
        actions = [
            ("shadow_action" if slot.name == ARMS else f"shadow_action_{slot.name}", pa.string())
            for slot in self._menu.slots
        ]
        actions += [(f"shadow_action_{one.name}", pa.float64()) for one in self._menu.ranges]
        return [("shadow_version", pa.int64()), ("shadow_probability", pa.float64()), *actions]

    def columns(self, positions: Sequence[int]) -> list[Any]:
        """The columns for the decisions at positions; calls must have rising positions."""
        import pyarrow as pa

        if not self._exists:
            return []
        self._advance(max(positions, default=0))
        found = [self._found.pop(position, None) for position in positions]
        parts = [
            [None if one is None else self._named(place, one.choice[place]) for one in found]
            for place in range(len(self._menu.slots) + len(self._menu.ranges))
        ]
        columns = [
            [None if one is None else one.version for one in found],
            [None if one is None else one.chance for one in found],
            *parts,
        ]
        fields = self.fields()
        return [pa.array(one, kind) for one, (_, kind) in zip(columns, fields, strict=True)]

    def _named(self, place: int, part: float) -> str | float:
        slots = self._menu.slots
        return slots[place].choices[int(part)].name if place < len(slots) else float(part)

    def _advance(self, last: int) -> None:
        """Read opinions until one is about a decision after the last position."""
        while not any(position > last for position in self._found):
            page = self._store.read(self._stream, self._read, limit=10)
            if not page:
                return
            for event in page:
                if event.kind == OPINIONS:
                    self._keep(body_of(event, Opinions))
            self._read = page[-1].position

    def _keep(self, found: Opinions) -> None:
        rows = zip(found.positions, found.chances, found.choices, strict=True)
        for position, chance, choice in rows:
            self._found[position] = _Opinion(found.version, chance, choice)
