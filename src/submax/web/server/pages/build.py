"""Makes what each page shows from a bandit and its rollups."""

import math
import time
from typing import Any

import msgspec
import numpy as np

from submax.bandit.decision import LiftReport
from submax.core.errors import InputError, NotFoundError
from submax.live.bandits.bandit import LiveBandit
from submax.live.monitoring.rollups.decision_sums import DecisionSums
from submax.live.monitoring.rollups.delay_bins import BINS, bounds
from submax.live.monitoring.rollups.rollups import Rollups
from submax.schema.actions import ActionSpec
from submax.web.server.interface.alarm_handlers import alarm_details
from submax.web.server.pages.alerts import alerts
from submax.web.server.pages.arms.arm_notes import arm_notes
from submax.web.server.pages.arms.late_arms import arm_delays
from submax.web.server.pages.messages import (
    ArmsPage,
    BanditRow,
    DelayBin,
    HealthPage,
    OverviewPage,
    SettingsPage,
    Unit,
    VersionRow,
    VersionsPage,
)
from submax.web.server.pages.series import reward_series, share_series
from submax.web.server.pages.setting_forms import fixed_settings, setting_forms
from submax.web.server.pages.verdict import arm_sentence, leader, lift_sentence

HOUR = 3600.0
UNBOUNDED = (-math.inf, math.inf)
"""The bounds of rewards that have none."""
MOST_ARMS = 100
"""Choices on one page, so that a browser shows it quickly."""
MOST_VERSIONS = 200
"""Versions on one page, the newest."""


def bandit_row(bandit: LiveBandit) -> BanditRow:
    """A bandit in the list of all."""
    rollups = bandit.rollups()
    total = _total(rollups)
    return BanditRow(
        bandit.name,
        bandit.version,
        0 if rollups is None else _recent_decisions(rollups),
        int(total.decisions[0]),
        _ratio(total.rewarded[0], total.matured[0]),
        _ratio(total.reward[0], total.matured[0]),
        alerts(bandit, rollups),
        bandit.settings.status,
        _lift(bandit),
        unit_of(bandit),
    )


def overview(bandit: LiveBandit, span: str | None) -> OverviewPage:
    """How a bandit does."""
    lift, rollups = _lift(bandit), bandit.rollups()
    unit = unit_of(bandit)
    percent = unit == "percent"
    total, held_out = _total(rollups, 0), _total(rollups, 1)
    known = rollups or Rollups()
    return OverviewPage(
        bandit.name,
        [
            arm_sentence(bandit.menu, bandit.ledger().tally, percent=percent),
            *[lift_sentence(one, percent=percent) for one in lift],
        ],
        lift,
        alerts(bandit, rollups),
        {
            "decisions": float(total.decisions[0] + held_out.decisions[0]),
            "matured": float(total.matured[0] + held_out.matured[0]),
            "reward of the bandit": _ratio(total.reward[0], total.matured[0]),
            "reward of the holdout": _ratio(held_out.reward[0], held_out.matured[0]),
            "version": float(bandit.version),
        },
        reward_series(known, span, _control(bandit), (0.0, 1.0) if percent else UNBOUNDED),
        bandit.published_at[-100:],
        unit,
    )


def arms(bandit: LiveBandit, slot: str | None, span: str | None, page: str | None) -> ArmsPage:
    """The choices of a bandit."""
    rollups = bandit.rollups() or Rollups()
    names = [one.name for one in bandit.menu.slots]
    if slot is not None and slot not in names:
        raise NotFoundError(f"there is no slot {slot!r:.60}: the slots are {', '.join(names)}")
    number = 0 if slot is None else names.index(slot)
    choices = [one.name for one in bandit.menu.slots[number].choices] if names else []
    found = [one for one in bandit.arms() if one.slot == names[number]] if names else []
    current, pages = page_number(page), math.ceil(len(found) / MOST_ARMS)
    if pages > 1:
        found.sort(key=lambda one: -one.decisions)
    return ArmsPage(
        bandit.name,
        names,
        names[number] if names else "",
        bool(bandit.settings.context.width) and bandit.policy.traits.uses_context,
        found[(current - 1) * MOST_ARMS : current * MOST_ARMS],
        share_series(rollups, span, choices, number),
        current,
        pages,
        len(found),
        leader(bandit.menu, bandit.ledger().tally),
        arm_notes(bandit, rollups),
        unit_of(bandit),
    )


def page_number(given: str | None) -> int:
    """The number of the page that was asked for; 1 if none was."""
    if given is None:
        return 1
    if not (given.isascii() and given.isdigit() and 0 < len(given) < 7 and int(given)):
        raise InputError(f"page was {given!r:.60}: give a number from 1 on")
    return int(given)


def versions(bandit: LiveBandit) -> VersionsPage:
    """The versions of a bandit, newest first."""
    rollups = bandit.rollups() or Rollups()
    sums = DecisionSums.of_table(rollups.versions.rows)
    of_bandit = rollups.versions.rest == 0
    numbers = np.stack([sums.decisions, sums.mean, sums.standard_error], axis=1)[of_bandit]
    by_version = dict(
        zip(rollups.versions.leading[of_bandit].tolist(), numbers.tolist(), strict=True)
    )
    fitted = bandit.versions()[::-1]
    rows = []
    for place, one in enumerate(fitted[:MOST_VERSIONS]):
        decisions, mean, error = by_version.get(one.version, (0.0, math.nan, math.nan))
        rows.append(
            VersionRow(
                one.version,
                one.policy,
                one.rows,
                one.base,
                int(decisions),
                mean if math.isfinite(mean) else None,
                error if math.isfinite(error) else None,
                one.version == bandit.version,
                place < bandit.settings.keep_versions,
            )
        )
    return VersionsPage(
        bandit.name, bandit.version, bandit.held, len(fitted), rows, unit_of(bandit)
    )


def health(bandit: LiveBandit) -> HealthPage:
    """Whether a bandit works as it should."""
    rollups = bandit.rollups()
    known, counts, total = rollups or Rollups(), bandit.counts(), _total(rollups)
    return HealthPage(
        bandit.name,
        alerts(bandit, rollups),
        counts,
        counts.get("decisions", 0) - counts.get("matured", 0),
        _delay_bins(known),
        arm_delays(bandit, rollups),
        bandit.settings.longest_wait if math.isfinite(bandit.settings.longest_wait) else None,
        known.least_propensity if total.matured[0] else None,
        float(total.effective[0]) if total.matured[0] else None,
        bandit.failures,
        [alarm_details(one) for one in bandit.alarms()],
        _lift(bandit),
    )


def _delay_bins(rollups: Rollups) -> list[DelayBin]:
    """The histogram of all delays, from the first to the last bin with a reward."""
    counts = rollups.delays.sums.bins.sum(axis=0)
    used = np.flatnonzero(counts).tolist()
    return [
        DelayBin(
            bounds(place)[0],
            None if place == BINS - 1 else bounds(place)[1],
            int(counts[place]),
        )
        for place in (range(used[0], used[-1] + 1) if used else ())
    ]


def settings_page(bandit: LiveBandit) -> SettingsPage:
    """What is declared of a bandit, and the forms by which it can be changed."""
    settings = bandit.settings
    table: dict[str, Any] = msgspec.to_builtins(settings)
    return SettingsPage(
        bandit.name,
        table,
        settings.status,
        setting_forms(settings, bandit.menu),
        fixed_settings(settings),
    )


def unit_of(bandit: LiveBandit) -> Unit:
    """How mean rewards of a bandit are shown."""
    return "percent" if bandit.settings.rewards["kind"] == "binary" else "number"


def _lift(bandit: LiveBandit) -> list[LiftReport]:
    """The lift over holdout and control, as far as they are declared."""
    rails = bandit.settings.guard_rails
    return bandit.lift() if rails.holdout or rails.control_share else []


def _json(value: Any) -> str:
    return "" if value is None else msgspec.json.encode(value).decode()


def _control(bandit: LiveBandit) -> tuple[str, int] | None:
    """The name and the number of the control, if arms are plain and there is one."""
    menu: ActionSpec = bandit.menu
    control = bandit.settings.guard_rails.control
    if control is None or not menu.plain:
        return None
    return f"control {control}", int(menu.encoded(control)[0])


def _recent_decisions(rollups: Rollups) -> int:
    """Decisions of the last hour."""
    minutes = rollups.tiers[0]
    since = (time.time() - HOUR) // minutes.resolution.seconds
    return int(minutes.groups.rows[minutes.groups.leading > since, 0].sum())


def _total(rollups: Rollups | None, group: int | None = None) -> DecisionSums:
    """The sums over all days, of one group or of both."""
    days = (rollups or Rollups()).tiers[-1].groups
    rows = days.rows if group is None else days.rows[days.rest == group]
    return DecisionSums.of_table(rows.sum(axis=0, keepdims=True))


def _ratio(numerator: float, denominator: float) -> float | None:
    return float(numerator / denominator) if denominator else None
