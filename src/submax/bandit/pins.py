"""The pins of units in a store; ``drawing.Draws`` says what they are for."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from threading import Lock
from typing import Any

from submax.bandit.declaring import DeclaredBandit
from submax.bandit.drawing import Pin, first_pins
from submax.bandit.row_texts import action_text, choices_text, read_action, read_choices
from submax.bandit.store import Store, result_of
from submax.bandit.tables import UnitRow

CACHED_PINS = 10_000
"""Pins of a store that are in memory, about 1 kB each with some probabilities."""
UNITS_AT_ONCE = 200
"""Units that one query asks for."""


class StorePins:
    """The pins of units in a store; the stored pin decides, whoever was first."""

    def __init__(self, store: Store, declared: Callable[[], DeclaredBandit]) -> None:
        self._store, self._declared = store, declared
        self._cached: OrderedDict[tuple[str, str], Pin] = OrderedDict()
        self._lock = Lock()

    def find(self, units: Collection[str], periods: Sequence[str], after: float) -> dict[str, Pin]:
        """The pins of these units that were made after a time: of each, in the first period."""
        missing = [
            unit for unit in units if not any((unit, one) in self._cached for one in periods)
        ]
        for first in range(0, len(missing), UNITS_AT_ONCE):
            self._read(missing[first : first + UNITS_AT_ONCE], periods)
        return first_pins(self._cached, units, periods, after)

    def _read(self, units: Sequence[str], periods: Sequence[str]) -> None:
        values: dict[str, Any] = {f"u{place}": unit for place, unit in enumerate(units)}
        values |= {f"p{place}": period for place, period in enumerate(periods)}
        rows = self._store.select(
            "select unit, period, version, action, propensity, eligible, probabilities, at "
            "from unit where bandit = :bandit "
            f"and unit in ({', '.join(f':u{place}' for place in range(len(units)))}) "
            f"and period in ({', '.join(f':p{place}' for place in range(len(periods)))})",
            bandit=self._declared().n,
            **values,
        )
        for row in rows:
            self._remember(self._pin(UnitRow(*row)))

    def keep(self, pins: Sequence[Pin]) -> Sequence[Pin]:
        """Write pins, and return what is stored: another process may have been first."""
        menu = self._declared().menu
        rows = []
        for pin in pins:
            eligible, probabilities = choices_text(
                menu, pin.eligible, pin.probabilities, exact=True
            )
            action = action_text(menu, pin.action)
            rows.append(
                UnitRow(
                    pin.unit,
                    pin.period,
                    pin.version,
                    action,
                    pin.propensity,
                    eligible,
                    probabilities,
                )
            )
        stored = result_of(self._store.pin_units(self._declared().n, rows))
        kept = [
            pin if _same_pin(row, ours) else self._pin(row)
            for pin, ours, row in zip(pins, rows, stored, strict=True)
        ]
        for pin in kept:
            self._remember(pin)
        return kept

    def forget(self, unit: str | None = None) -> None:
        """Forget the pins of a unit, or all, that are in memory."""
        with self._lock:
            for key in [key for key in self._cached if unit in (None, key[0])]:
                del self._cached[key]

    def _remember(self, pin: Pin) -> None:
        with self._lock:
            self._cached[pin.unit, pin.period] = pin
            if len(self._cached) > CACHED_PINS:
                self._cached.popitem(last=False)

    def _pin(self, row: UnitRow) -> Pin:
        menu = self._declared().menu
        eligible, probabilities = read_choices(menu, row.eligible, row.probabilities)
        action = menu.encoded(read_action(menu, row.action))
        return Pin(
            row.unit,
            row.period,
            row.at,
            action,
            row.propensity,
            row.version,
            eligible,
            probabilities,
        )


def _same_pin(stored: UnitRow, ours: UnitRow) -> bool:
    """Whether the stored pin is the one that was just written, or one that says the same."""
    names = ("version", "action", "propensity", "eligible", "probabilities")
    return all(getattr(stored, name) == getattr(ours, name) for name in names)
