"""Draws decisions: the holdout, units, the burn-in and everything else."""

from collections.abc import Iterable, Sequence

import numpy as np

from submax.bandit.active_version import ActiveVersion, DrawnAction
from submax.bandit.assignment import CheckedRequest, ExperimentAssignment
from submax.bandit.guard_rails import Place, Ramp, limits_at
from submax.live.serving.drawn_decision import DrawnDecision
from submax.live.serving.units.unit_draws import UnitDraws
from submax.schema.actions import ChoiceIndices

PAUSED = "paused"
"""The purpose of the numbers by which decisions for units are drawn while a bandit is paused."""


class DecisionDraws:
    """Draws the decisions of one process.

    ``decided`` is the number of decisions of this process, which says whether the burn-in is over.
    """

    def __init__(self, units: UnitDraws, rng: np.random.Generator) -> None:
        self.decided = 0
        self._units, self._rng = units, rng
        self._starts: dict[Place, int] = {}
        self._ramps: tuple[Ramp, ...] = ()
        self._open_ramps: tuple[Ramp, ...] = ()
        self._ramped_version: int | None = None

    def resume(self, decided: int, ramps: Iterable[Ramp]) -> None:
        """Continue after so many decisions of the log, and in these ramps."""
        self.decided = decided
        self._starts = {ramp.place: ramp.since for ramp in ramps}

    def ramped(self, serving: ActiveVersion) -> ActiveVersion:
        """The version as it decides now, with the limits of choices that are still ramped up.

        The ramp of a choice that is added later, here or by another process, begins with the next
        decision of this process. The version counts as ramped until the next one, because units
        that got their actions during the ramp keep them.
        """
        if not serving.ramps and self._ramped_version != serving.version:
            return serving
        if serving.ramps is not self._ramps:
            for ramp in serving.ramps:
                self._starts.setdefault(ramp.place, self.decided)
            self._ramps = self._open_ramps = serving.ramps
        limits = limits_at(self._open_ramps, self.decided, self._starts) if self._open_ramps else ()
        if limits:
            self._ramped_version = serving.version
        else:
            self._open_ramps = ()
        return serving.limited(limits) if self._ramped_version == serving.version else serving

    def one(
        self, serving: ActiveVersion, request: CheckedRequest, *, uniform: bool
    ) -> DrawnDecision:
        """Draw the decision of a request; ``uniform`` within the guard rails if so asked."""
        serving = self.ramped(serving)
        if serving.settings.status == "paused":
            return self._while_paused(serving, request)
        rails = serving.settings.guard_rails
        is_holdout = bool(rails.holdout) and self._held_out(serving, [request])[0]
        uniform = uniform or self.decided < rails.burn_in
        self.decided += 1
        if is_holdout and not rails.aa_test:
            return _decision(serving, request, serving.baseline(), is_holdout=True)
        if request.unit is not None:
            return self._for_unit(serving, request, uniform, is_holdout)
        drawn = serving.draw(request.values, request.eligible, uniform, self._rng)
        return _decision(serving, request, drawn, is_holdout)

    def together(
        self, serving: ActiveVersion, requests: Sequence[CheckedRequest]
    ) -> list[DrawnDecision]:
        """Draw as ``one`` does for each request, with the same probabilities."""
        if self.ramped(serving).limits:
            # Every decision has limits of its own.
            return [self.one(serving, request, uniform=False) for request in requests]
        if serving.settings.status == "paused":
            return [self._while_paused(serving, request) for request in requests]
        held_out = self._held_out(serving, requests)
        gets_baseline = [one and not serving.settings.guard_rails.aa_test for one in held_out]
        # The first decisions of the burn-in are uniform, and those of the holdout count, too.
        begin = serving.settings.guard_rails.burn_in - self.decided
        found: dict[int, DrawnDecision] = {}
        groups: dict[tuple[ChoiceIndices, bool], list[int]] = {}
        for place, request in enumerate(requests):
            if gets_baseline[place]:
                drawn = serving.baseline()
                found[place] = _decision(serving, request, drawn, is_holdout=True)
            elif request.unit is not None:
                is_uniform = place < begin
                found[place] = self._for_unit(serving, request, is_uniform, held_out[place])
            else:
                groups.setdefault((request.eligible, place < begin), []).append(place)
        for (eligible, uniform), places in groups.items():
            rows = [requests[place].values for place in places]
            drawn_together = serving.draw_many(rows, eligible, uniform, self._rng)
            for place, drawn in zip(places, drawn_together, strict=True):
                found[place] = _decision(serving, requests[place], drawn, held_out[place])
        self.decided += len(requests)
        return [found[place] for place in range(len(requests))]

    def _while_paused(self, serving: ActiveVersion, request: CheckedRequest) -> DrawnDecision:
        """The control, the baseline, or a uniform draw, which is the same for the same unit."""
        self.decided += 1
        drawn = serving.fixed_action(request.eligible)
        if drawn is None:
            rng = self._rng
            if request.unit is not None:
                rng = self._units.generator(serving, PAUSED, request.unit)
            drawn = serving.draw(request.values, request.eligible, uniform=True, rng=rng)
        return DrawnDecision(drawn, serving.version, paused=True)

    def _for_unit(
        self, serving: ActiveVersion, request: CheckedRequest, uniform: bool, is_holdout: bool
    ) -> DrawnDecision:
        found = self._units.draw(serving, request, uniform, self._rng)
        decision = _decision(serving, request, found.drawn, is_holdout)
        return decision._replace(version=found.version, pin=found.pin)

    def _held_out(self, serving: ActiveVersion, requests: Sequence[CheckedRequest]) -> list[bool]:
        """Which decisions belong to the holdout: those of a unit all do, or none."""
        share = serving.settings.guard_rails.holdout
        if not share:
            return [False] * len(requests)
        drawn = self._rng.random(len(requests)) < share
        return [
            serving.may_hold_out(request.eligible)
            and (
                bool(is_drawn)
                if request.unit is None
                else self._units.is_held_out(serving, request.unit)
            )
            for is_drawn, request in zip(drawn, requests, strict=True)
        ]


def _decision(
    serving: ActiveVersion, request: CheckedRequest, drawn: DrawnAction, is_holdout: bool
) -> DrawnDecision:
    group = group_of(serving, request.eligible, drawn, is_holdout)
    return DrawnDecision(drawn, serving.version, is_holdout, group)


def group_of(
    serving: ActiveVersion, eligible: ChoiceIndices, drawn: DrawnAction, is_holdout: bool
) -> ExperimentAssignment | None:
    """The group of a decision; None if guard rails set no decisions apart."""
    rails = serving.settings.guard_rails
    if not rails.holdout and not rails.control_share:
        return None
    has_control = serving.control_place(eligible) is not None and max(map(len, eligible)) > 1
    is_control = has_control and serving.is_control(drawn.row)
    return ExperimentAssignment(
        serving.groups_since,
        "holdout" if is_holdout else "control" if is_control else "bandit",
        rails.holdout if rails.holdout and serving.may_hold_out(eligible) else 0.0,
        rails.control_share if has_control else 0.0,
    )
