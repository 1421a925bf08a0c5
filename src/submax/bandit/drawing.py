"""From a request to a drawn decision: checks, groups, ramps, the burn-in and sticky units."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any, NamedTuple

import msgspec
import numpy as np

from submax.bandit.active_version import (
    MAX_LOGGED_PROBABILITIES,
    UNKNOWN_CATEGORIES,
    ActiveVersion,
    DrawnAction,
    joint_action,
)
from submax.bandit.assignment import ExperimentAssignment, UnitNumbers, action_codes
from submax.bandit.guard_rails import find_places, is_eligible, limits_at
from submax.bandit.names import check_identifier, new_identifier
from submax.core.arrays import Floats
from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.schema.actions import ChoiceIndices, EncodedAction

PAUSED, CONTROL, HOLDOUT = "paused", "control", "holdout"
"""Purposes for which numbers of a unit are drawn; other purposes are periods."""


class CheckedRequest(NamedTuple):
    """A decision that is to be made; ``values`` are those of the context, in declared order."""

    identifier: str
    values: list[Any]
    eligible: ChoiceIndices
    activate: bool
    unit: str | None = None


def checked_request(
    version: ActiveVersion,
    /,
    context: object = None,
    *,
    id: object = None,  # noqa: A002 - the word that callers know
    eligible: object = None,
    activate: object = True,
    unit: object = None,
    **unknown: object,
) -> CheckedRequest:
    """Check the arguments of ``decide``; without an ``id``, make one."""
    for name in unknown:
        one_of("field of a request", name, ["context", "id", "eligible", "activate", "unit"])
    if id is None:
        identifier = new_identifier()
    else:
        check_identifier("the id of a decision", id)
        identifier = str(id)
    if not isinstance(activate, bool):
        raise InputError(
            f"activate must be true or false, not {activate!r:.60}", parameter="activate"
        )
    if unit is not None:
        check_identifier("the unit of a decision", unit)
        unit = str(unit)
    schema = version.settings.context
    values = schema.clean(context)
    for name in schema.unknown(values) if values else ():
        version.failures[f"{UNKNOWN_CATEGORIES} of {name!r}"] += 1
    choices = version.active if eligible is None else version.menu.eligible(eligible)
    return CheckedRequest(identifier, values, choices, activate, unit)


class Pin(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the first decision of a unit in a ``period`` was drawn from, ``at`` that time.

    As long as the pin lasts, the unit's decisions are drawn from these probabilities of the
    eligible joint actions; without probabilities they repeat the action.
    """

    unit: str
    period: str
    at: float
    action: EncodedAction
    propensity: float
    version: int
    eligible: ChoiceIndices
    probabilities: list[float] | None


class Pins:
    """The last pin of each unit in memory; the oldest are forgotten first."""

    def __init__(self, most: int, pins: Iterable[Pin] = ()) -> None:
        self._most, self._lock = most, Lock()
        self._pins = OrderedDict((pin.unit, pin) for pin in pins)

    def __iter__(self) -> Iterator[Pin]:
        return iter(self._pins.values())

    def find(self, units: Collection[str], periods: Sequence[str], after: float) -> dict[str, Pin]:
        """The pins of these units that were made in one of these periods, and after a time."""
        pins = filter(None, map(self._pins.get, units))
        return {one.unit: one for one in pins if one.period in periods and one.at > after}

    def keep(self, pins: Sequence[Pin]) -> Sequence[Pin]:
        """Keep pins, and return what is kept: another process may have pinned a unit first."""
        with self._lock:
            for pin in pins:
                self._pins[pin.unit] = pin
                self._pins.move_to_end(pin.unit)
            while len(self._pins) > self._most:
                self._pins.popitem(last=False)
        return pins


class DrawnDecision(NamedTuple):
    """An action, the number of the ``version`` that drew it, and the group of the decision."""

    drawn: DrawnAction
    version: int
    holdout: bool = False
    group: ExperimentAssignment | None = None
    paused: bool = False


class Draws:
    """Draws the decisions of one process.

    ``decided`` is the number of decisions so far, which says whether the burn-in is over and how
    far ramps are. The caller sets it, and subtracts decisions that turn out to be repeated.

    **Units.** The same unit gets the same action for a while. Each joint action a has an
    exponential number Eₐ, which follows from the unit and the period by a hash, and the action with
    the smallest Eₐ / pₐ is chosen. Over units, action a is chosen with the probability pₐ. A unit
    keeps its action if others become ineligible, are added or change their probabilities among
    themselves. If probabilities may change before the period is over, because of a context or a new
    version, the first decision of a unit makes a pin with its probabilities, and later ones are
    drawn from the pin. Their propensities are true: they are the probabilities in the pin,
    restricted to what is eligible now.

    Reference: the smallest Eₐ / pₐ is the first arrival of Poisson processes with the rates pₐ.
    """

    def __init__(
        self,
        name: str,
        pins: Pins,
        rng: np.random.Generator,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.decided = 0
        self._name, self._pins, self._rng, self._clock = name, pins, rng, clock

    def ramped(self, version: ActiveVersion) -> ActiveVersion:
        """The version as it decides now, with the limits of choices that are still ramped up."""
        limits = limits_at(version.ramps, self.decided) if version.ramps else ()
        return version.limited(limits) if limits else version

    def draw(
        self,
        version: ActiveVersion,
        requests: Sequence[CheckedRequest],
        *,
        uniform: bool = False,
    ) -> list[DrawnDecision]:
        """Draw the decisions of requests; all are ``uniform`` within the guard rails if so asked.

        Probabilities that depend on contexts are computed as one array for all requests.
        """
        version = self.ramped(version)
        if version.limits and len(requests) > 1:
            # Every decision has limits of its own.
            return [self.draw(version, [one], uniform=uniform)[0] for one in requests]
        if not requests:
            return []
        # The first decisions of the burn-in are uniform, and those of the holdout count, too.
        rails = version.settings.guard_rails
        left = len(requests) if uniform else rails.burn_in - self.decided
        self.decided += len(requests)
        if version.settings.status == "paused":
            return [self._while_paused(version, request) for request in requests]
        has_groups = rails.holdout or rails.control_share
        if not (has_groups or requests[1:] or requests[0].unit):
            # A single decision without groups, as most are.
            drawn = version.draw([requests[0].values], requests[0].eligible, left > 0, self._rng)
            return [DrawnDecision(drawn[0], version.version)]
        held_out = self._held_out(version, requests) if rails.holdout else [False] * len(requests)
        found: dict[int, tuple[DrawnAction, int]] = {}
        units: list[int] = []
        alike: dict[tuple[ChoiceIndices, bool], list[int]] = {}
        for place, request in enumerate(requests):
            if held_out[place] and not rails.aa_test:
                found[place] = DrawnAction(version.baseline or [], 1.0, None), version.version
            elif request.unit is not None:
                units.append(place)
            else:
                alike.setdefault((request.eligible, place < left), []).append(place)
        if units:
            pairs = [(requests[place], place < left) for place in units]
            found.update(zip(units, self._for_units(version, pairs), strict=True))
        for (eligible, is_uniform), places in alike.items():
            rows = [requests[place].values for place in places]
            for place, one in zip(
                places, version.draw(rows, eligible, is_uniform, self._rng), strict=True
            ):
                found[place] = one, version.version
        return [
            DrawnDecision(
                *found[place],
                held_out[place],
                group_of(version, request.eligible, found[place][0], held_out[place])
                if has_groups
                else None,
            )
            for place, request in enumerate(requests)
        ]

    def must_pin(self, version: ActiveVersion) -> bool:
        """Whether probabilities may change while a unit is to get the same action."""
        sticky = version.settings.sticky
        if sticky == "version":
            # Units that got their actions during a ramp keep them.
            return not version.ignores_context or bool(version.ramps)
        return sticky != "none"

    def _while_paused(self, version: ActiveVersion, request: CheckedRequest) -> DrawnDecision:
        """The control, the baseline, or a uniform draw, which is the same for the same unit."""
        for action in (version.control, version.baseline):
            if action is not None and is_eligible(action, request.eligible):
                return DrawnDecision(DrawnAction(action, 1.0, None), version.version, paused=True)
        drawn = self._fresh(version, request, True, None if request.unit is None else PAUSED)
        return DrawnDecision(drawn, version.version, paused=True)

    def _held_out(self, version: ActiveVersion, requests: Sequence[CheckedRequest]) -> list[bool]:
        """Which decisions belong to the holdout: those of a unit all do, or none.

        A unit stays in the holdout while the share does not fall.
        """
        share, numbers = version.settings.guard_rails.holdout, self._numbers(version)
        drawn = self._rng.random(len(requests)).tolist()
        return [
            is_eligible(version.baseline, request.eligible)
            and share > (number if request.unit is None else numbers.uniform(HOLDOUT, request.unit))
            for number, request in zip(drawn, requests, strict=True)
        ]

    def _for_units(
        self, version: ActiveVersion, pairs: Sequence[tuple[CheckedRequest, bool]]
    ) -> list[tuple[DrawnAction, int]]:
        """Draw for requests that name units, each uniformly or not; return versions, too."""
        sticky, now = version.settings.sticky, self._clock()
        periods, after = _periods(sticky, version.version, now)
        period = None if sticky == "none" else periods[0]
        pins, new = dict[str, Pin](), dict[str, Pin]()
        if self.must_pin(version):
            pins = self._pins.find({request.unit or "" for request, _ in pairs}, periods, after)
            for request, is_uniform in pairs:
                unit = request.unit or ""
                if unit not in pins and unit not in new:
                    drawn = self._fresh(version, request, is_uniform, period)
                    new[unit] = Pin(
                        unit, periods[0], now, drawn.row, drawn.propensity, version.version,
                        request.eligible, drawn.probabilities,
                    )  # fmt: skip
        if new:
            # Another process may have been first: what is kept decides.
            pins.update((pin.unit, pin) for pin in self._pins.keep(list(new.values())))
        found = []
        for request, is_uniform in pairs:
            pin = pins.get(request.unit or "")
            # None if nothing that the pin knows is eligible.
            repeated = None if pin is None else self._repeated(version, request, pin)
            if pin is None or repeated is None:
                found.append((self._fresh(version, request, is_uniform, period), version.version))
            else:
                found.append((repeated, pin.version))
        return found

    def _fresh(
        self, version: ActiveVersion, request: CheckedRequest, uniform: bool, period: str | None
    ) -> DrawnAction:
        """Draw by the version that decides now; without a ``period``, the draw is not repeated."""
        if version.can_list:
            (sampler,) = version.samplers([request.values], request.eligible, uniform)
            return self._chosen(version, request, sampler.probabilities, period)
        rng = self._rng
        if period is not None:
            rng = self._numbers(version).generator(period, request.unit or "")
        return version.draw([request.values], request.eligible, uniform, rng)[0]

    def _repeated(
        self, version: ActiveVersion, request: CheckedRequest, pin: Pin
    ) -> DrawnAction | None:
        """Draw from a pin; None if nothing that the pin knows is eligible.

        Actions that the pin does not know have the probability 0, so units keep their actions. The
        control has its share, which guard rails fix.
        """
        eligible = request.eligible
        if pin.probabilities is None:
            repeats = is_eligible(pin.action, eligible)
            return DrawnAction(pin.action, pin.propensity, None) if repeats else None
        weights, share = np.array(pin.probabilities), 0.0
        if eligible != pin.eligible:
            places = find_places(eligible, pin.eligible)
            weights = np.where(places < 0, 0.0, weights[places])
        control = version.control_place(eligible)
        if control is not None and len(weights) > 1:
            share = version.settings.guard_rails.control_share
            weights[control] = 0.0
        total = weights.sum()
        if total <= 0:
            return None
        pinned: Floats = (1.0 - share) * weights / total
        if share:
            pinned[control] = share
        return self._chosen(version, request, pinned, pin.period)

    def _chosen(
        self,
        version: ActiveVersion,
        request: CheckedRequest,
        probabilities: Floats,
        period: str | None,
    ) -> DrawnAction:
        """Draw with these probabilities ``[M]``; the control is drawn once for each unit."""
        unit, weights = request.unit or "", probabilities
        place, numbers = version.control_place(request.eligible), self._numbers(version)
        index = None
        if place is not None and len(weights) > 1:
            if numbers.uniform(CONTROL, unit) < probabilities[place]:
                index = place
            weights = np.where(np.arange(len(weights)) == place, 0.0, weights)
        if index is None and period is None:
            index = int(self._rng.choice(len(weights), p=weights / weights.sum()))
        elif index is None:
            codes = action_codes(request.eligible)
            index = numbers.first_arrival(period or "", unit, codes, weights)
        listed = probabilities.tolist() if len(weights) <= MAX_LOGGED_PROBABILITIES else None
        action = joint_action(index, request.eligible)
        return DrawnAction(action, float(probabilities[index]), listed)

    def _numbers(self, version: ActiveVersion) -> UnitNumbers:
        return UnitNumbers(self._name, version.settings.seed)


def _periods(sticky: float | str, version: int, now: float) -> tuple[list[str], float]:
    """The periods in which a pin that lasts now can be, and the time after which it was made.

    The first period is the present one. For a duration, periods are successive intervals of this
    length, so a pin that has not expired belongs to the present one or to the one before.
    """
    if isinstance(sticky, str):
        return [f"v{version}"], -math.inf
    number = now // sticky
    return [f"t{sticky:g}.{one:.0f}" for one in (number, number - 1)], now - sticky


def group_of(
    version: ActiveVersion, eligible: ChoiceIndices, drawn: DrawnAction, is_held_out: bool
) -> ExperimentAssignment:
    """The group of a decision, and the probabilities of the groups."""
    rails = version.settings.guard_rails
    has_control = version.control_place(eligible) is not None and max(map(len, eligible)) > 1
    is_control = has_control and drawn.row == version.control
    return ExperimentAssignment(
        version.groups_since,
        "holdout" if is_held_out else "control" if is_control else "bandit",
        rails.holdout if is_eligible(version.baseline, eligible) else 0.0,
        rails.control_share if has_control else 0.0,
    )
