"""The list of bandits, and what one does now and did over the whole time, sentences first."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from submax.bandit.arms import ArmStatus, ChoiceTally, weighted_rate
from submax.bandit.decision import LiftReport
from submax.bandit.durable import DurableBandit
from submax.bandit.lift import PLANNED_DECISIONS
from submax.bandit.reading import HOLDOUT, HOUR, PAUSED, Cell, Condition, Sums
from submax.core.errors import InputError, NotFoundError
from submax.schema.actions import ActionSpec
from submax.sequential.mixture_boundary import mixture_boundary
from submax.server.pages.charts import (
    DEVIATIONS,
    added,
    cells_of,
    lift_chart,
    marks,
    reward_chart,
    share_chart,
)
from submax.server.pages.formats import Shown, interval, percent, points, reward, sentence
from submax.server.pages.segments import crossed, most_different

ERROR = 0.05
"""The chance with which the interval of two arms misses the truth at any time."""
FEWEST = 50
"""Rows of an arm below which nothing is said: the interval holds for large samples."""
SMALLEST_WINDOW, LARGEST_WINDOW, PART = 1_000, 20_000, 20
"""What a bandit does now is told of its newest decisions: a twentieth of all, within limits."""
MOST_ARMS = 20
"""Arms in the table of the overview, those that are shown most now; the page Arms has all."""
SENTENCES = 6
"""Segments that the first sentence about a personalised bandit names."""


def unit_of(bandit: DurableBandit) -> str:
    """How mean rewards of a bandit are shown: in percent if they are 0 or 1."""
    return "percent" if bandit.settings.rewards["kind"] == "binary" else "number"


def lift_of(bandit: DurableBandit) -> list[LiftReport]:
    """The lift over holdout and control, as far as they are declared."""
    rails = bandit.settings.guard_rails
    return bandit.lift() if rails.holdout or rails.control_share else []


def is_personalised(bandit: DurableBandit) -> bool:
    """Whether different contexts can get different actions."""
    return bool(bandit.settings.context.width) and bandit.policy.traits.uses_context


def alerts(bandit: DurableBandit, conditions: Sequence[Condition] | None = None) -> list[str]:
    """Sentences about what needs a person's attention, the gravest first."""
    known = bandit.conditions() if conditions is None else conditions
    waiting = bandit.read.waiting()
    found = [sentence(one.sentence) for one in known]
    found += [
        f"{count:,} {kind} since the server was started."
        for kind, count in bandit.failures.items()
        if count
    ]
    found += [sentence(one) for one in bandit.notices() if one != waiting]
    if bandit.held:
        found.append(f"Version {bandit.version} is held: newer versions are fitted but not used.")
    return found


def bandit_row(bandit: DurableBandit) -> Shown:
    """A bandit in the list of all."""
    reader = bandit.read
    totals = reader.totals()
    own = added(sums for part, sums in totals.items() if part not in (HOLDOUT, PAUSED))
    hour = reader.series(since=bandit.store.now(reader.declared.n) - HOUR)
    return Shown(
        name=bandit.name,
        status=bandit.settings.status,
        version=bandit.version,
        decisions=bandit.counts()["decisions"],
        hourly=round(sum(cell.sums.decisions for cell in hour)),
        rewarded=own.rewarded / own.known if own.known else None,
        mean=own.mean,
        unit=unit_of(bandit),
        lift=lift_of(bandit),
        alerts=alerts(bandit),
        waiting=reader.waiting(),
    )


def overview(bandit: DurableBandit, span: str | None = None, slot: str | None = None) -> Shown:
    """What a bandit does now and did over the whole time."""
    reader, unit = bandit.read, unit_of(bandit)
    counts, reports, waiting = bandit.counts(), lift_of(bandit), reader.waiting()
    slots = [one.name for one in bandit.menu.slots]
    slot = slot_of(slots, slot)
    window = min(max(counts["decisions"] // PART, SMALLEST_WINDOW), LARGEST_WINDOW)
    since, recent = reader.recent(window, step=HOUR, slot=slot)
    arms = _arms(bandit, slot, recent)
    times = cells_of(bandit, span, slot)
    shares = share_chart(times, [one.name for one in arms])
    own = [cell.sums for cell in recent if cell.part not in (HOLDOUT, PAUSED)]
    totals = reader.totals()
    start = times.at[0] if times.at else math.inf
    own_totals = added(sums for part, sums in totals.items() if part not in (HOLDOUT, PAUSED))
    return Shown(
        name=bandit.name,
        unit=unit,
        personalised=is_personalised(bandit),
        sentences=[
            *arm_sentences(bandit, arms, recent, window),
            *(lift_sentence(one, unit) for one in reports),
        ],
        waiting=waiting,
        alerts=alerts(bandit),
        window=min(window, counts["decisions"]),
        since=since,
        arms=sorted(arms, key=lambda one: -(one.share_now or 0.0))[:MOST_ARMS],
        facts={
            "decisions": counts["decisions"],
            "wait for rewards": counts["decisions"] - counts["matured"],
            "reward now": added(own).mean,
            "reward, whole time": own_totals.mean,
            "reward of the holdout": totals.get(HOLDOUT, Sums()).mean,
            "version": bandit.version,
        },
        lift=reports,
        span=times.span,
        shares=shares,
        rewards=reward_chart(times, bandit.settings.scale.bounds),
        lifts=lift_chart(bandit, start if reports else math.inf),
        marks=marks(bandit, times.at),
        versions=[one for one in bandit.published_at() if one >= start][-100:],
    )


def slot_of(slots: Sequence[str], slot: str | None) -> str:
    """The slot that was asked for, or the first one; empty if there is none."""
    if slot is None:
        return slots[0] if slots else ""
    if slot not in slots:
        raise NotFoundError(f"there is no slot {slot!r:.60}: the slots are {', '.join(slots)}")
    return slot


def _arms(bandit: DurableBandit, slot: str, recent: Sequence[Cell]) -> list[Shown]:
    """The choices of a slot in the order of the menu."""
    now = {name: tally_of(recent, name) for name in {cell.choice for cell in recent}}
    total = sum(one.decisions for one in now.values())
    found = []
    statuses = [one for one in bandit.arms() if one.slot == slot]
    for colour, one in enumerate(statuses):
        tally = now.get(one.choice, ChoiceTally())
        rate, low, high = weighted_rate(tally, bandit.settings.scale)
        found.append(
            Shown(
                name=one.choice,
                colour=colour,
                status=one.status,
                probability=one.probability,
                share_now=tally.decisions / total if total else None,
                rate_now=rate,
                low_now=low,
                high_now=high,
                share=one.share,
                rate=one.reward_rate,
                low=one.low,
                high=one.high,
            )
        )
    return found


def tally_of(cells: Sequence[Cell], choice: str) -> ChoiceTally:
    """The sums of a choice, without decisions that were held out or paused."""
    return added(
        cell.sums for cell in cells if cell.choice == choice and cell.part not in (HOLDOUT, PAUSED)
    ).tally


class ArmComparison(NamedTuple):
    """By how much the arm ``ahead`` is better than ``behind``, with an interval."""

    ahead: str
    behind: str
    low: float
    high: float


def comparison(
    menu: ActionSpec, tallies: Sequence[ChoiceTally], *, at_any_time: bool = True
) -> ArmComparison | None:
    """Compare the two active arms that earn most; None if one was chosen too rarely.

    Every row gives x = w r for the better arm, −w r for the other and 0 for all others, with
    w = 1 / propensity. Its expected value is the difference of what the two arms earn, whatever the
    policy preferred at that time. The interval around the mean of x is valid at all times (Howard,
    Ramdas, McAuliffe and Sekhon 2021), or for one look, for large samples.
    """
    total = sum(one.rows for one in tallies)
    known = [
        (one.weights[2] / one.weights[0], choice.name, one)
        for choice, one in zip(menu.slots[0].choices, tallies, strict=False)
        if choice.status == "active" and one.rows >= FEWEST
    ]
    if len(known) < 2:
        return None
    (_, ahead, best), (_, behind, second) = sorted(known, key=lambda row: -row[0])[:2]
    difference = (best.weights[2] - second.weights[2]) / total
    variance = (best.weights[4] + second.weights[4]) / total
    width = (
        mixture_boundary(total, ERROR, 0.0, PLANNED_DECISIONS)
        if at_any_time
        else DEVIATIONS * math.sqrt(total)
    )
    half = math.sqrt(variance) * width / total
    return ArmComparison(ahead, behind, difference - half, difference + half)


def arm_sentences(
    bandit: DurableBandit, arms: Sequence[Shown], recent: Sequence[Cell], window: int
) -> list[str]:
    """What the bandit does now, and which arm is ahead, as far as that can be said."""
    menu, unit = bandit.menu, unit_of(bandit)
    shown = max(arms, key=lambda one: one.share_now or 0.0, default=None)
    if not menu.slots:
        return ["The action consists of numbers, which the page of decisions shows."]
    if shown is None or not shown.share_now:
        return ["No decision has been made yet."]
    last = f"the last {window:,} decisions"
    if is_personalised(bandit):
        return [_personalised(bandit, window)]
    if not menu.plain:
        slots = ", ".join(one.name for one in menu.slots)
        return [f"The action has several parts ({slots}): see Arms and segments."]
    earns = f" and earns {reward(shown.rate_now, unit)}" if shown.rate_now is not None else ""
    found = [f"Now: '{shown.name}' gets {percent(shown.share_now, 0)} of {last}{earns}."]
    now = comparison(menu, [tally_of(recent, one.name) for one in arms], at_any_time=False)
    if now is not None and now.low > 0:
        found.append(
            f"In {last} '{now.ahead}' is ahead of '{now.behind}' by {_span(now, unit)} (95 % "
            "interval for one look)."
        )
    ever = comparison(menu, bandit.read.tally().of_slot(0, len(arms)))
    if ever is not None and ever.low > 0 and ever.ahead != shown.name:
        found.append(
            f"Over the whole time '{ever.ahead}' earned most, but this has changed: the "
            f"bandit now shows '{shown.name}'."
        )
    elif ever is not None and ever.low > 0:
        found.append(
            f"Over the whole time '{ever.ahead}' is ahead of '{ever.behind}' by "
            f"{_span(ever, unit)} (95 % interval, valid at any time)."
        )
    elif now is None or now.low <= 0:
        found.append(
            "It cannot be said yet which arm is best"
            + (f": '{now.ahead}' seems best, by {_span(now, unit)}." if now else ".")
        )
    return found


def _span(one: ArmComparison, unit: str) -> str:
    return points(one.low, one.high, unit)


def _personalised(bandit: DurableBandit, window: int) -> str:
    """Which arm is shown to whom, by the fields by which arms differ most."""
    fields = most_different(bandit, window)
    if fields is None:
        return "Different visitors can get different arms; so far all get about the same."
    table = crossed(bandit, *fields, decisions=window)
    boxes = [
        (f"{row.name} / {column}" if column else row.name, cell)
        for row in table.rows
        for column, cell in zip(table.columns or [""], row.cells, strict=True)
        if cell.choice
    ]
    boxes.sort(key=lambda pair: -pair[1].decisions)
    by_arm: dict[str, list[str]] = {}
    for label, cell in boxes[:SENTENCES]:
        by_arm.setdefault(cell.choice, []).append(f"{label} ({percent(cell.share, 0)})")
    shown = "; ".join(f"'{arm}' for {' and '.join(who)}" for arm, who in by_arm.items())
    more = f"; {len(boxes) - SENTENCES} more segments" if len(boxes) > SENTENCES else ""
    by = " and ".join(one for one in fields if one)
    if len(by_arm) == 1:
        return f"Most visitors get the same arm: by {by}, {shown}{more}."
    return f"Different visitors get different arms: by {by}, {shown}{more}."


def lift_sentence(report: LiftReport, unit: str) -> str:
    """How much more the bandit earns than the holdout or the control."""
    if report.low is None or report.high is None:
        return f"The gain over the {report.against} cannot be said yet."
    certainty = "(95 % interval, valid at any time)"
    scale, word = (100, " percentage points") if unit == "percent" else (1, "")
    low, high = scale * report.low, scale * report.high
    means = ""
    if report.mean is not None and report.mean_of_group is not None:
        means = f": {reward(report.mean, unit)} against {reward(report.mean_of_group, unit)}"
    if report.low > 0:
        return (
            f"The bandit earns {interval(low, high)}{word} more than the {report.against} "
            f"{certainty}{means}."
        )
    if report.high < 0:
        return (
            f"The bandit earns {interval(-high, -low)}{word} less than the {report.against} "
            f"{certainty}{means}."
        )
    return (
        f"Whether the bandit earns more than the {report.against} cannot be said yet{means}, a "
        f"difference of {interval(low, high)}{word} {certainty}."
    )


def leader(bandit: DurableBandit, statuses: Sequence[ArmStatus]) -> str:
    """The arm that is surely ahead of all others over the whole time, empty if none is."""
    if not bandit.menu.plain or is_personalised(bandit):
        return ""
    found = comparison(bandit.menu, bandit.read.tally().of_slot(0, len(statuses)))
    return found.ahead if found is not None and found.low > 0 else ""


def page_number(text: str | None) -> int:
    """The number of the page that was asked for; 1 if none was."""
    if text is None:
        return 1
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 7 and int(text)):
        raise InputError(
            f"page cannot be {text!r:.60}: give a number, at least 1", parameter="page"
        )
    return int(text)
