"""The pins of units in a store; ``drawing.Draws`` says what they are for."""

from collections.abc import Callable, Collection, Sequence

import msgspec

from submax.bandit.declaring import DeclaredBandit
from submax.bandit.drawing import Pin, Pins
from submax.bandit.row_texts import action_text, choices_text, read_action, read_choices
from submax.bandit.store import Store, result_of
from submax.bandit.tables import UnitRow

CACHED_PINS = 10_000
"""Pins of a store that are in memory, about 1 kB each with some probabilities."""
UNITS_AT_ONCE = 200
"""Units that one query asks for."""


class StorePins(Pins):
    """The pins of units in a store; the stored pin decides, whoever was first."""

    def __init__(self, store: Store, declared: Callable[[], DeclaredBandit]) -> None:
        super().__init__(CACHED_PINS)
        self._store, self._declared = store, declared

    def find(self, units: Collection[str], periods: Sequence[str], after: float) -> dict[str, Pin]:
        known = super().find(units, periods, after)
        missing = [unit for unit in units if unit not in known]
        for first in range(0, len(missing), UNITS_AT_ONCE):
            values = {f"u{place}": one for place, one in enumerate(missing[first:][:UNITS_AT_ONCE])}
            names = {f"p{place}": one for place, one in enumerate(periods)}
            rows = self._store.select(
                "select unit, period, version, action, propensity, eligible, probabilities, at "
                f"from unit where bandit = :bandit and unit in (:{', :'.join(values)}) "
                f"and period in (:{', :'.join(names)}) order by at",
                bandit=self._declared().n,
                **values,
                **names,
            )
            super().keep([self._pin(UnitRow(*row)) for row in rows])
        return super().find(units, periods, after)

    def keep(self, pins: Sequence[Pin]) -> Sequence[Pin]:
        rows = [self._row(pin) for pin in pins]
        stored = result_of(self._store.pin_units(self._declared().n, rows))
        return super().keep(
            [
                # Another process may have been first.
                pin if msgspec.structs.replace(row, at=0.0) == ours else self._pin(row)
                for pin, ours, row in zip(pins, rows, stored, strict=True)
            ]
        )

    def forget(self) -> None:
        """Forget the pins that are in memory."""
        with self._lock:
            self._pins.clear()

    def _row(self, pin: Pin) -> UnitRow:
        menu = self._declared().menu
        choices = choices_text(menu, pin.eligible, pin.probabilities, exact=True)
        action = action_text(menu, pin.action)
        return UnitRow(pin.unit, pin.period, pin.version, action, pin.propensity, *choices)

    def _pin(self, row: UnitRow) -> Pin:
        menu = self._declared().menu
        choices = read_choices(menu, row.eligible, row.probabilities)
        action = menu.encoded(read_action(menu, row.action))
        return Pin(row.unit, row.period, row.at, action, row.propensity, row.version, *choices)
