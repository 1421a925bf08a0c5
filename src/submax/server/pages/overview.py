"""The list of bandits, and what one does now and did over the whole time, sentences first."""

import math
from collections import defaultdict
from collections.abc import Sequence

from submax.bandit.arms import Tally
from submax.bandit.durable import DurableBandit
from submax.bandit.reading import HOLDOUT, HOUR
from submax.server.pages.charts import (
    cells_of,
    lift_chart,
    marks,
    own_cells,
    reward_chart,
    share_chart,
    slot_of,
)
from submax.server.pages.comparing import (
    alerts,
    comparison,
    is_personalised,
    lift_of,
    own_totals,
    unit_of,
)
from submax.server.pages.formats import Shown, interval, lift_sentence, percent, reward
from submax.server.pages.segments import crossed, most_different

SMALLEST_WINDOW, LARGEST_WINDOW, PART = 1_000, 20_000, 20
"""What a bandit does now is told of its newest decisions: a twentieth of all, within limits."""
MOST_ARMS = 20  # in the table, those that are shown most now; the page of arms has all
SENTENCES = 6  # segments that the first sentence about a personalised bandit names


def bandit_row(bandit: DurableBandit) -> Shown:
    """A bandit in the list of all."""
    reader = bandit.read
    own = own_totals(reader.totals())
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
    reader, unit, slot = bandit.read, unit_of(bandit), slot_of(bandit, slot)
    counts, reports, totals = bandit.counts(), lift_of(bandit), reader.totals()
    window = min(max(counts["decisions"] // PART, SMALLEST_WINDOW), LARGEST_WINDOW)
    since, recent = reader.recent(window, step=HOUR, slot=slot)
    now: dict[str, list[Tally]] = defaultdict(list)
    for cell in own_cells(recent):
        now[cell.choice].append(cell.sums)
    tallies = {choice: Tally.total(sums) for choice, sums in now.items()}
    arms = _arms(bandit, slot, tallies)
    times = cells_of(bandit, span, slot)
    start = times.at[0] if times.at else math.inf
    return Shown(
        name=bandit.name,
        unit=unit,
        personalised=is_personalised(bandit),
        sentences=[
            *_arm_sentences(bandit, arms, tallies, window),
            *(lift_sentence(one, unit) for one in reports),
        ],
        waiting=reader.waiting(),
        alerts=alerts(bandit),
        window=min(window, counts["decisions"]),
        since=since,
        arms=sorted(arms, key=lambda one: -(one.share_now or 0.0))[:MOST_ARMS],
        facts={
            "decisions": counts["decisions"],
            "wait for rewards": counts["decisions"] - counts["matured"],
            "reward now": Tally.total(tallies.values()).mean,
            "reward, whole time": own_totals(totals).mean,
            "reward of the holdout": totals.get(HOLDOUT, Tally()).mean,
            "version": bandit.version,
        },
        lift=reports,
        span=times.span,
        shares=share_chart(times, [one.name for one in arms]),
        rewards=reward_chart(times, bandit.settings.scale.bounds),
        lifts=lift_chart(bandit, start if reports else math.inf),
        marks=marks(bandit, times.at),
        versions=[one for one in bandit.published_at() if one >= start][-100:],
    )


def _arms(bandit: DurableBandit, slot: str, tallies: dict[str, Tally]) -> list[Shown]:
    """The choices of a slot in the order of the menu."""
    total = sum(one.decisions for one in tallies.values())
    arms = []
    statuses = [one for one in bandit.arms() if one.slot == slot]
    for colour, one in enumerate(statuses):
        tally = tallies.get(one.choice, Tally())
        arms.append(
            Shown(
                name=one.choice,
                colour=colour,
                status=one.status,
                probability=one.probability,
                share_now=tally.decisions / total if total else None,
                rate_now=tally.weighted_rate(bandit.settings.scale)[0],
                share=one.share,
                rate=one.reward_rate,
                low=one.low,
                high=one.high,
            )
        )
    return arms


def _arm_sentences(
    bandit: DurableBandit, arms: Sequence[Shown], tallies: dict[str, Tally], window: int
) -> list[str]:
    """What the bandit does now, and which arm is ahead, as far as that can be said."""
    menu, unit = bandit.menu, unit_of(bandit)
    shown = max(arms, key=lambda one: one.share_now or 0.0, default=None)
    if not menu.slots:
        return ["The action consists of numbers: see Decisions."]
    if shown is None or not shown.share_now:
        return ["No decision has been made yet."]
    if is_personalised(bandit):
        return [_personalised(bandit, window)]
    if not menu.plain:
        slots = ", ".join(one.name for one in menu.slots)
        return [f"The action has several parts ({slots}): see Arms and segments."]
    last = f"the last {window:,} decisions"
    earns = f" and earns {reward(shown.rate_now, unit)}" if shown.rate_now is not None else ""
    said = [f"Now: '{shown.name}' gets {percent(shown.share_now, 0)} of {last}{earns}."]
    recent = [tallies.get(one.name, Tally()) for one in arms]
    now = comparison(menu, recent, at_any_time=False)
    by_now = "" if now is None else interval(now.low, now.high, unit, difference=True)
    if now is not None and now.low > 0:
        lead = f"In {last} '{now.ahead}' is ahead of '{now.behind}' by {by_now}"
        said.append(f"{lead} (95 % interval for one look).")
    ever = comparison(menu, bandit.read.tallies()[0])
    if ever is not None and ever.low > 0:
        by = interval(ever.low, ever.high, unit, difference=True)
        said.append(
            f"Over the whole time '{ever.ahead}' is ahead of '{ever.behind}' by {by} (95 % "
            "interval, valid at any time)."
            if ever.ahead == shown.name
            else f"Over the whole time '{ever.ahead}' earned most, but this has changed: the "
            f"bandit now shows '{shown.name}'."
        )
    elif now is None or now.low <= 0:
        seems = "" if now is None else f": '{now.ahead}' seems best, by {by_now}"
        said.append(f"No arm is clearly best yet{seems}.")
    return said


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
    by, alike = " and ".join(filter(None, fields)), len(by_arm) == 1
    begin = "Most visitors get the same arm" if alike else "Different visitors get different arms"
    return f"{begin}: by {by}, {shown}{more}."
