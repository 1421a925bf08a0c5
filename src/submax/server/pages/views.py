"""What the pages show: one function for each page, which reads a bandit, and what they share."""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from submax.bandit.active_version import UNKNOWN_CATEGORIES
from submax.bandit.arms import Tally
from submax.bandit.conditions import Condition
from submax.bandit.decision import LiftReport
from submax.bandit.durable import DurableBandit
from submax.bandit.reading import (
    HOLDOUT,
    HOUR,
    PAUSED,
    SEGMENT_DECISIONS,
    Cell,
    FoundDecision,
    ListedDecision,
    Segment,
)
from submax.bandit.settings import ABOUT, FIXED, SETTING_TYPES
from submax.core.checks import one_of
from submax.core.errors import InputError, NotFoundError
from submax.policies.specification import PolicySpecification
from submax.schema.context import Category
from submax.server.pages.formats import Shown, lift_sentence, percent, reward, sentence

DAY = 24 * HOUR
SPANS: dict[str, tuple[str, float, int]] = {
    "hour": ("1 hour", HOUR, 60),
    "day": ("1 day", DAY, HOUR),
    "week": ("7 days", 7 * DAY, HOUR),
    "month": ("30 days", 30 * DAY, 6 * HOUR),
    "year": ("1 year", 365 * DAY, 2 * DAY),
    "all": ("all", math.inf, HOUR),
}
"""The ranges that can be picked: their names, their lengths, and the seconds of an interval."""
MOST_INTERVALS = 250
MOST_LINES = 8  # choices that have a line of their own; the others are shown as one
OTHERS, OTHERS_COLOUR = "all others", 8
DEVIATIONS = 1.959964  # standard errors within which the mean is expected in 95 of 100 cases
SMALLEST_WINDOW, LARGEST_WINDOW, PART = 1_000, 20_000, 20
"""What a bandit does now is told of its newest decisions: a twentieth of all, within limits."""
MOST_ARMS_NOW, MOST_ARMS = 20, 100
"""Choices on the overview and on the page of arms, the most frequent ones."""
MOST_VALUES = 12  # values of a field that have a row or a column, the most frequent ones
NOTES = {"silent-arm": "no rewards", "late-arm": "late rewards"}
"""What a condition says about an arm, in two words."""
MOST_OPTIONS = 100  # arms in a list to choose from; of more, the name is typed
MOST_VERSIONS = 200  # on one page, the newest


# What several pages ask of a bandit


def unit_of(bandit: DurableBandit) -> str:
    """How mean rewards of a bandit are shown: in percent if they are 0 or 1."""
    return "percent" if bandit.settings.rewards["kind"] == "binary" else "number"


def slot_of(bandit: DurableBandit, slot: str | None) -> str:
    """The slot that was asked for, or the first one; empty if there is none."""
    slots = [one.name for one in bandit.menu.slots]
    if slot is None:
        return slots[0] if slots else ""
    if slot not in slots:
        raise NotFoundError(f"there is no slot {slot!r:.60}: the slots are {', '.join(slots)}")
    return slot


def lift_of(bandit: DurableBandit) -> list[LiftReport]:
    """The lift over holdout and control, as far as they are declared."""
    rails = bandit.settings.guard_rails
    return bandit.lift() if rails.holdout or rails.control_share else []


def is_personalised(bandit: DurableBandit) -> bool:
    """Whether different contexts can get different actions."""
    return bool(bandit.settings.context.width) and bandit.policy.traits.uses_context


def own_totals(totals: dict[str, Tally]) -> Tally:
    """The sums of the decisions that the policy or the control made."""
    return Tally.total(sums for part, sums in totals.items() if part not in (HOLDOUT, PAUSED))


def own_cells(cells: Iterable[Cell]) -> list[Cell]:
    """Those of decisions that were not held out, nor made while the bandit was paused."""
    return [cell for cell in cells if cell.part not in (HOLDOUT, PAUSED)]


def alerts(bandit: DurableBandit, conditions: Sequence[Condition] | None = None) -> list[str]:
    """Sentences about what needs attention, the most serious first."""
    known = bandit.conditions() if conditions is None else conditions
    waiting, failures = bandit.read.waiting(), bandit.failures.items()
    found = [sentence(one.sentence) for one in known]
    found += [
        f"{count:,} {kind} since the server started."
        for kind, count in failures
        # A notice says how many decisions had unknown categories.
        if count and not kind.startswith(UNKNOWN_CATEGORIES)
    ]
    found += [sentence(one) for one in bandit.notices() if one != waiting]
    if bandit.held:
        found.append(f"Version {bandit.version} is held: newer versions are fitted but not used.")
    return found


# The list of bandits, and the overview


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
    return Shown(
        name=bandit.name,
        unit=unit,
        personalised=is_personalised(bandit),
        sentences=[
            *_arm_sentences(bandit, arms, window),
            *(lift_sentence(one, unit) for one in reports),
        ],
        waiting=reader.waiting(),
        alerts=alerts(bandit),
        window=min(window, counts["decisions"]),
        since=since,
        arms=sorted(arms, key=lambda one: -(one.share_now or 0.0))[:MOST_ARMS_NOW],
        facts={
            "decisions": counts["decisions"],
            "waiting for rewards": counts["decisions"] - counts["matured"],
            "reward now": Tally.total(tallies.values()).mean,
            "reward overall": own_totals(totals).mean,
            "reward of the holdout": totals.get(HOLDOUT, Tally()).mean,
            "version": bandit.version,
        },
        lift=reports,
        span=times.span,
        shares=share_chart(times, [one.name for one in arms]),
        rewards=reward_chart(times, bandit.settings.scale.bounds),
    )


def _arms(bandit: DurableBandit, slot: str, tallies: dict[str, Tally]) -> list[Shown]:
    total, scale = sum(one.decisions for one in tallies.values()), bandit.settings.scale
    arms = []
    for colour, one in enumerate(one for one in bandit.arms() if one.slot == slot):
        tally = tallies.get(one.choice, Tally())
        share, (rate, *_) = tally.decisions / total if total else None, tally.weighted_rate(scale)
        arms.append(Shown(of=one, name=one.choice, colour=colour, share_now=share, rate_now=rate))
    return arms


def _arm_sentences(bandit: DurableBandit, arms: Sequence[Shown], window: int) -> list[str]:
    menu, unit = bandit.menu, unit_of(bandit)
    shown = max(arms, key=lambda one: one.share_now or 0.0, default=None)
    if not menu.slots:
        return ["The actions are numbers: see Decisions."]
    if shown is None or not shown.share_now:
        return ["No decisions yet."]
    if is_personalised(bandit):
        return ["Different visitors can get different arms: see Arms and segments."]
    if not menu.plain:
        slots = ", ".join(one.name for one in menu.slots)
        return [f"The action has several parts ({slots}): see Arms and segments."]
    share, earned = percent(shown.share_now, 0), shown.rate_now
    earns = "" if earned is None else f" and earns {reward(earned, unit)}"
    return [f"Now: '{shown.name}' gets {share} of the last {window:,} decisions{earns}."]


# Charts


def cells_of(bandit: DurableBandit, span: str | None, slot: str = "") -> Shown:
    """Sums by interval, choice and part; without a ``span`` in the shortest that has everything.

    ``at`` are the times at which the intervals begin, each of so many ``seconds``.
    """
    reader = bandit.read
    now = bandit.store.now(reader.declared.n)
    age, wait = now - reader.declared.created, bandit.settings.reward_wait
    if span is None:
        # Rewards that still wait need a longer range than the decisions.
        fits = (age <= length and (seconds >= HOUR or wait < length / 2)
                for _, length, seconds in SPANS.values())  # fmt: skip
        span = next(name for name, fit in zip(SPANS, fits, strict=True) if fit)
    one_of("span", span, list(SPANS))
    _, length, seconds = SPANS[span]
    if span == "all":
        seconds = HOUR * max(1, math.ceil(age / HOUR / MOST_INTERVALS))
    since = now - length
    if seconds < HOUR:
        start, cells = reader.recent(SEGMENT_DECISIONS, step=seconds, slot=slot)
        since = max(since, start)
    else:
        cells = reader.series(None if since == -math.inf else since, step=seconds, slot=slot)
    cells = [cell for cell in cells if cell.at > since - seconds]
    at: list[float] = []
    if times := sorted({cell.at for cell in cells})[-MOST_INTERVALS:]:
        # An event far from the others must not make a chart of empty intervals.
        first = max(times[0], times[-1] - (MOST_INTERVALS - 1) * seconds)
        at = [first + number * seconds for number in range(int((times[-1] - first) / seconds) + 1)]
    return Shown(span=span, seconds=seconds, cells=cells, at=at)


def _line(name: str, colour: int, values: list[float | None], *ends: list[float | None]) -> Shown:
    low, high = ends or (None, None)
    return Shown(name=name, colour=colour, values=values, low=low, high=high)


def share_chart(times: Shown, choices: Sequence[str]) -> Shown:
    """The share of the decisions that each choice got; the least frequent ones are joined."""
    total: dict[float, float] = defaultdict(float)
    counts: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for cell in own_cells(times.cells):
        total[cell.at] += cell.sums.decisions
        counts[cell.choice][cell.at] += cell.sums.decisions
    frequent = sorted(choices, key=lambda name: -sum(counts[name].values()))
    joined = set(frequent[MOST_LINES:] if len(choices) > MOST_LINES + 1 else ())

    def shares(names: Iterable[str]) -> list[float | None]:
        sums = [sum(counts[name].get(at, 0.0) for name in names) for at in times.at]
        pairs = zip(sums, times.at, strict=True)
        return [one / total[at] if total.get(at) else None for one, at in pairs]

    lines = [
        _line(name, colour, shares([name]))
        for colour, name in enumerate(choices)
        if name not in joined
    ]
    if joined:
        lines.append(_line(OTHERS, OTHERS_COLOUR, shares(joined)))
    return Shown(seconds=times.seconds, at=times.at, lines=lines)


def reward_chart(times: Shown, bounds: tuple[float, float] | None) -> Shown:
    """The mean reward of a decision by group, with 95 % bands that respect bounds of rewards."""
    least, most = bounds or (-math.inf, math.inf)

    def end(sums: Tally, deviations: float) -> float | None:
        if sums.mean is None or sums.standard_error is None:
            return None
        return min(max(sums.mean + deviations * sums.standard_error, least), most)

    lines = []
    groups = {"bandit": ("", "bandit"), "holdout": (HOLDOUT,), "control": ("control",)}
    for colour, (name, parts) in enumerate(groups.items()):
        found: dict[float, list[Tally]] = defaultdict(list)
        for cell in times.cells:
            if cell.part in parts:
                found[cell.at].append(cell.sums)
        known = [Tally.total(found.get(at, ())) for at in times.at]
        if any(one.known for one in known):
            band = ([end(one, side * DEVIATIONS) for one in known] for side in (-1, 1))
            lines.append(_line(name, colour, [one.mean for one in known], *band))
    return Shown(seconds=times.seconds, at=times.at, lines=lines)


# Arms and segments


def arms_page(
    bandit: DurableBandit,
    slot: str | None = None,
    first: str | None = None,
    second: str | None = None,
) -> Shown:
    """What each choice earns, and segments by the fields ``first`` and ``second``.

    Without ``first``, by the first two fields of the context.
    """
    slots, slot = [one.name for one in bandit.menu.slots], slot_of(bandit, slot)
    arms = [one for one in bandit.arms() if one.slot == slot] if slots else []
    shown = arms
    if len(arms) > MOST_ARMS:
        shown = sorted(arms, key=lambda one: -one.decisions)[:MOST_ARMS]
    fields, table = list(bandit.settings.context.names), None
    if fields and slots:
        if first is None:
            first, second, *_ = [*fields, None]
        table = crossed(bandit, first, second or None, slot=slot)
    return Shown(
        name=bandit.name,
        unit=unit_of(bandit),
        personalised=is_personalised(bandit),
        slots=slots,
        slot=slot,
        arms=shown,
        total=len(arms),
        colours=_colours(bandit, slot),
        notes=[
            Shown(choice=one.subject, words=NOTES[one.kind], sentence=sentence(one.sentence))
            for one in bandit.conditions()
            if one.kind in NOTES
        ],
        fields=fields,
        first=first or "",
        second=second or "",
        segments=table,
    )


def crossed(bandit: DurableBandit, first: str, second: str | None, *, slot: str = "") -> Shown:
    """What was shown in which segments, by one field or two crossed.

    ``rows`` have a name, a value of the first field, and a box for each of the ``columns``, the
    values of the second.
    """
    if first == second:
        raise InputError(
            f"the field {first!r:.60} is named twice: choose another second field, or none",
            parameter="second",
        )
    found = bandit.read.segments(first, second, slot=slot, decisions=SEGMENT_DECISIONS)
    columns = _frequent(found, 1) if second else [""]
    by_values, colours, rows = {one.values: one for one in found}, _colours(bandit, slot), []
    for row in _frequent(found, 0):
        places = [(row, column) if second else (row,) for column in columns]
        cells = [_box(bandit, by_values.get(place), colours) for place in places]
        rows.append(Shown(name=row, cells=cells))
    total = sum(one.decisions for one in found)
    return Shown(
        first=first,
        second=second or "",
        columns=columns if second else [],
        rows=rows,
        decisions=total,
        left_out=total - sum(cell.decisions for row in rows for cell in row.cells),
    )


def _frequent(segments: Sequence[Segment], place: int) -> list[str]:
    """The most frequent values of a field, in the order of their names or numbers."""
    counts = Counter[str]()
    for one in segments:
        counts[one.values[place]] += one.decisions
    return sorted((value for value, _ in counts.most_common(MOST_VALUES)), key=_order)


def _order(label: str) -> tuple[float, float, str]:
    """Bins of numbers by their edges (“below 3” first), then categories by their names."""
    word, _, rest = label.partition(" ")
    try:
        number = float(rest if word == "below" else word)
    except ValueError:
        return math.inf, 0.0, label
    return number, 0.0 if word == "below" else 1.0, label


def _colours(bandit: DurableBandit, slot: str) -> dict[str, int]:
    choices = [one.choices for one in bandit.menu.slots if one.name == slot]
    return {one.name: number for number, one in enumerate(choices[0])} if choices else {}


def _box(bandit: DurableBandit, segment: Segment | None, colours: dict[str, int]) -> Shown:
    """A segment with all its choices, the one first that is shown most; empty if there is none."""
    if segment is None or not segment.decisions:
        return Shown(decisions=0, arms=[])
    arms = []
    for choice, tally in segment.choices.items():
        rate, low, high = tally.weighted_rate(bandit.settings.scale)
        decisions, colour = round(tally.decisions), colours.get(choice, 8)
        arms.append(
            Shown(
                choice=choice, colour=colour, decisions=decisions,
                share=decisions / segment.decisions, rate=rate, low=low, high=high,
            )
        )  # fmt: skip
    return Shown(decisions=segment.decisions, mean=segment.mean, arms=arms)


# Decisions


def decisions_page(
    bandit: DurableBandit, identifier: str | None = None, unit: str | None = None
) -> Shown:
    """The decision with an id, the decisions of a unit, or the newest decisions."""
    identifier, unit = (identifier or "").strip(), (unit or "").strip()
    decision, newest, problem = None, list[ListedDecision](), ""
    try:
        if not identifier:
            newest = bandit.newest_decisions(unit or None)
            if unit and not newest:
                problem = (
                    f"The unit {unit} has no decisions: check its spelling, or search by "
                    "decision id."
                )
        elif (found := bandit.find_decision(identifier)) is not None:
            decision = _details(bandit, found)
        else:
            problem = (
                f"No decision of this bandit has the id {identifier}: check that it is complete, "
                "and that this bandit made the decision. Health lists the rewards in quarantine."
            )
    except InputError as error:
        problem = f"{error}."
    return Shown(
        name=bandit.name, id=identifier, unit=unit, problem=problem,
        decision=decision, newest=newest,
    )  # fmt: skip


def _details(bandit: DurableBandit, found: FoundDecision) -> Shown:
    slots = [slot.name for slot in bandit.menu.slots]
    joint = itertools.product(*found.eligible) if found.probabilities else []
    actions = [
        Shown(action=action, probability=probability, taken=action == found.action)
        for parts, probability in zip(joint, found.probabilities or [], strict=True)
        for action in [parts[0] if bandit.menu.plain else dict(zip(slots, parts, strict=True))]
    ]
    actions = sorted(actions, key=lambda one: -one.probability)[:MOST_OPTIONS]
    if not any(one.taken for one in actions):
        taken = Shown(action=found.action, probability=found.propensity, taken=True)
        actions = [*actions[: MOST_OPTIONS - 1], taken]
    total = math.prod(map(len, found.eligible)) if not bandit.menu.ranges else 1
    wait = bandit.settings.longest_wait
    return Shown(
        found=found,
        wait=wait if math.isfinite(wait) else None,
        default=bandit.settings.default_reward,
        actions=actions,
        unlisted=total - len(actions),
    )


# Health and settings


def health(bandit: DurableBandit) -> Shown:
    """Whether a bandit works as it should."""
    reader, counts, conditions = bandit.read, bandit.counts(), bandit.conditions()
    wait = bandit.settings.longest_wait
    return Shown(
        name=bandit.name,
        conditions=conditions,
        alerts=alerts(bandit, [])[: 100 - len(conditions)],
        counts={name: count for name, count in counts.items() if count},
        pending=counts["decisions"] - counts["matured"],
        delays=reader.delays()[:MOST_OPTIONS],
        wait=wait if math.isfinite(wait) else None,
        smallest=reader.smallest_propensity(),
        effective=own_totals(reader.totals()).effective,
        failures=bandit.failures,
        quarantined=reader.early_rewards(20),
        lift=lift_of(bandit),
    )


def settings_page(bandit: DurableBandit) -> Shown:
    """What is declared of a bandit, and how it can be changed."""
    settings = bandit.settings
    table: dict[str, Any] = msgspec.to_builtins(settings)
    context = {
        name: list(field.values) if isinstance(field, Category) else "number"
        for name, field in settings.context.table.items()
    }
    versions, sums = bandit.versions()[::-1], bandit.read.by_version()
    choices = bandit.menu.slots[0].choices if bandit.menu.plain else ()
    arms = [one.name for one in choices if one.status != "retired"]
    return Shown(
        name=bandit.name,
        unit=unit_of(bandit),
        status=settings.status,
        values=msgspec.structs.asdict(settings)
        | {"context": context or None, "policy": PolicySpecification(settings.policy).text},
        rails=msgspec.structs.asdict(settings.guard_rails),
        # The description of each setting, as it is declared.
        about={name: ABOUT.get(name, "") for name in SETTING_TYPES},
        # The arms to choose a baseline from; none if the action has several parts.
        arms=arms if len(arms) <= MOST_OPTIONS else [],
        plain=bandit.menu.plain,
        fixed={name: table[name] for name in FIXED if name != "reward_wait"},
        settings=table,
        deciding=bandit.version,
        held=bandit.held,
        total=len(versions),
        versions=[
            Shown(of=one, earned=sums.get(one.version, Tally())) for one in versions[:MOST_VERSIONS]
        ],
        changes=bandit.audit(20),
    )
