"""Draws decisions for units."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from submax.bandit.active_version import (
    MAX_LOGGED_PROBABILITIES,
    ActiveVersion,
    DrawnAction,
    joint_action,
)
from submax.bandit.assignment import CheckedRequest, UnitNumbers, action_codes
from submax.bandit.guard_rails import find_places
from submax.core.arrays import Floats
from submax.live.log.unit_pin import StickyAssignment
from submax.live.serving.units.unit_pins import CachedPin, UnitPins
from submax.live.store.event import AppendResult, Entry
from submax.live.store.store import Store

CONTROL, HOLDOUT = "control", "holdout"
"""Purposes for which numbers of a unit are drawn; other purposes are periods."""


class AssignedAction(NamedTuple):
    """An action that was drawn for a unit, the version that drew it, and a pin to be written."""

    drawn: DrawnAction
    version: int
    pin: Entry | None = None


class UnitDraws:
    """Draws actions so that the same unit gets the same action for a while.

    Each joint action a has an exponential number Eₐ, which follows from the unit and the period by
    a hash, and the action with the smallest Eₐ / pₐ is chosen. Over units, action a is chosen with
    the probability pₐ. A unit keeps its action if others become ineligible, are added or change
    their probabilities among themselves.

    If probabilities may change before the period is over, because of a context or a new version,
    the first decision of a unit writes a pin with its probabilities, and later ones are drawn from
    the pin. Their propensities are true: they are the probabilities in the pin, restricted to what
    is eligible now.

    Reference: the smallest Eₐ / pₐ is the first arrival of Poisson processes with the rates pₐ.
    """

    def __init__(self, store: Store, stream: str, name: str, clock: Callable[[], float]) -> None:
        self._name, self._pins = name, UnitPins(store, stream, clock)

    def is_held_out(self, serving: ActiveVersion, unit: str) -> bool:
        """Whether a unit is in the holdout, in which it stays while the share does not fall."""
        share = serving.settings.guard_rails.holdout
        return share > 0 and self._numbers(serving).uniform(HOLDOUT, unit) < share

    def generator(self, serving: ActiveVersion, purpose: str, unit: str) -> np.random.Generator:
        """A random generator that is the same for the same unit and purpose."""
        return self._numbers(serving).generator(purpose, unit)

    def must_pin(self, serving: ActiveVersion) -> bool:
        """Whether probabilities may change while a unit is to get the same action."""
        sticky = serving.settings.sticky
        return not isinstance(sticky, str) or (sticky != "none" and serving.may_vary)

    def confirm(self, written: AppendResult) -> None:
        """Note that a pin is durable."""
        self._pins.confirm(written)

    def draw(
        self,
        serving: ActiveVersion,
        request: CheckedRequest,
        uniform: bool,
        rng: np.random.Generator,
    ) -> AssignedAction:
        """Draw the action of a request that names a unit."""
        sticky, unit = serving.settings.sticky, request.unit or ""
        if sticky == "none":
            return AssignedAction(
                self._fresh(serving, request, uniform, None, rng), serving.version
            )
        must_pin = self.must_pin(serving)
        found = self._pins.find(unit, sticky, serving.version) if must_pin else None
        if found is not None:
            repeated = self._repeated(serving, request, found)
            if repeated is not None:
                return AssignedAction(repeated, found.pin.version, self._unwritten(unit, found))
        period = self._pins.period(sticky, serving.version)
        drawn = self._fresh(serving, request, uniform, period, rng)
        if not must_pin or found is not None:
            return AssignedAction(drawn, serving.version)
        pin = StickyAssignment(*drawn[:2], serving.version, request.eligible, drawn.probabilities)
        return AssignedAction(drawn, serving.version, self._pins.entry(unit, pin, period))

    def _unwritten(self, unit: str, found: CachedPin) -> Entry | None:
        """The entry of a pin that an earlier decision has made and that may not be durable."""
        return None if found.durable else self._pins.entry(unit, found.pin, found.period)

    def _fresh(
        self,
        serving: ActiveVersion,
        request: CheckedRequest,
        uniform: bool,
        period: str | None,
        rng: np.random.Generator,
    ) -> DrawnAction:
        """Draw by the version that decides now; without a ``period``, the draw is not repeated."""
        if serving.can_list:
            found = serving.probabilities(request.values, request.eligible, uniform)
            return self._chosen(serving, request, found, period, rng)
        if period is not None:
            rng = self._numbers(serving).generator(period, request.unit or "")
        return serving.draw(request.values, request.eligible, uniform, rng)

    def _repeated(
        self, serving: ActiveVersion, request: CheckedRequest, found: CachedPin
    ) -> DrawnAction | None:
        """Draw from a pin; None if nothing that the pin knows is eligible."""
        pin = found.pin
        if pin.probabilities is None:
            pairs = zip(request.eligible, pin.action, strict=False)
            is_eligible = all(choice in indices for indices, choice in pairs)
            return DrawnAction(pin.action, pin.propensity, None) if is_eligible else None
        pinned = _pinned(serving, request, pin, np.array(pin.probabilities))
        return None if pinned is None else self._chosen(serving, request, pinned, found.period)

    def _chosen(
        self,
        serving: ActiveVersion,
        request: CheckedRequest,
        probabilities: Floats,
        period: str | None,
        rng: np.random.Generator | None = None,
    ) -> DrawnAction:
        """Draw with these probabilities ``[M]``; the control is drawn once for each unit."""
        unit, weights = request.unit or "", probabilities
        place, numbers = serving.control_place(request.eligible), self._numbers(serving)
        index = None
        if place is not None and len(weights) > 1:
            if numbers.uniform(CONTROL, unit) < probabilities[place]:
                index = place
            weights = np.where(np.arange(len(weights)) == place, 0.0, weights)
        if index is None and period is None and rng is not None:
            index = int(rng.choice(len(weights), p=weights / weights.sum()))
        elif index is None:
            codes = action_codes(request.eligible)
            index = numbers.first_arrival(period or "", unit, codes, weights)
        listed = probabilities.tolist() if len(weights) <= MAX_LOGGED_PROBABILITIES else None
        return DrawnAction(
            joint_action(index, request.eligible), float(probabilities[index]), listed
        )

    def _numbers(self, serving: ActiveVersion) -> UnitNumbers:
        return UnitNumbers(self._name, serving.settings.seed)


def _pinned(
    serving: ActiveVersion, request: CheckedRequest, pin: StickyAssignment, probabilities: Floats
) -> Floats | None:
    """The probabilities of a pin among the actions that are eligible now; None if all are 0.

    Actions that the pin does not know have the probability 0, so that units keep their actions. The
    control has its share, which guard rails fix.
    """
    eligible = request.eligible
    if eligible != pin.eligible:
        places = find_places(eligible, pin.eligible)
        probabilities = np.where(places.fresh, 0.0, probabilities[places.place])
    control = serving.control_place(eligible)
    mass = 1.0
    if control is not None and len(probabilities) > 1:
        mass -= serving.settings.guard_rails.control_share
        probabilities = np.where(np.arange(len(probabilities)) == control, 0.0, probabilities)
    total = probabilities.sum()
    if total <= 0:
        return None
    found: Floats = mass * probabilities / total
    if mass < 1:
        found[control] = 1 - mass
    return found
