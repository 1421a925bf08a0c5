"""The summary of a bandit for ``repr`` and notebooks."""

import math
from collections.abc import Mapping

from submax.bandit.active_version import ActiveVersion
from submax.bandit.settings import Settings
from submax.core.summary import LINES, Summary, counted, number, percentage
from submax.live.log.action_tally import ActionTally, ChoiceTally, ValueTally
from submax.live.log.ledger import Ledger
from submax.live.operating.notices import missing_rails
from submax.policies.specification import PolicySpecification
from submax.schema.actions import ActionSpec, Slot

COLUMNS = ("decisions", "share", "learned", "mean reward", "± s.e.")


def bandit_summary(
    name: str, serving: ActiveVersion, ledger: Ledger | None, failures: Mapping[str, int]
) -> Summary:
    """Sentences, and a table of actions with counts, mean rewards and shares of decisions.

    ``ledger`` is None if this process has not read the log. ``failures`` has counts by kind.
    """
    settings, menu = serving.settings, serving.menu
    counts: dict[str, int] = {} if ledger is None else dict(ledger.counts)
    decisions, learned = counts.get("decisions", 0), counts.get("learned", 0)
    sentences = [
        f"Bandit {name!r}: {_policy(settings)}, {_actions(menu)}, {_context(settings)}",
        f"{counted(decisions, 'decision')}, {learned:,} learned from, "
        f"{decisions - counts.get('matured', 0):,} open; version {serving.version}",
    ]
    if counts.get("late rewards"):
        sentences.append(
            f"{counted(counts['late rewards'], 'reward')} came too late to be learned from"
        )
    if counts.get("dropped from quarantine"):
        dropped = counted(counts["dropped from quarantine"], "reward")
        sentences.append(f"{dropped} of unknown decisions were dropped, because too many waited")
    failed = [f"{count:,} {kind}" for kind, count in failures.items() if count]
    if failed:
        sentences.append(f"failures after which the bandit went on: {', '.join(failed)}")
    if settings.status != "active":
        sentences.append(f"the bandit is {settings.status}")
    sentences += missing_rails(settings.guard_rails, menu)
    if ledger is None:
        sentences.append("the log is read by another process, so that nothing was counted here")
    tally = ActionTally.empty(len(menu.slots), len(menu.ranges))
    return _with_table(sentences, menu, tally if ledger is None else ledger.tally, serving)


def _with_table(
    sentences: list[str], menu: ActionSpec, tally: ActionTally, serving: ActiveVersion
) -> Summary:
    if menu.plain:
        shares = serving.shares
        rows = _rows(menu.slots[0], tally.choices[0], shares)
        columns = ["action", *COLUMNS] + (["next share"] if shares is not None else [])
        return Summary(sentences, columns, rows)
    parts = len(menu.slots) + len(menu.ranges)
    room = max(1, (LINES - len(sentences) - 2) // parts)
    rows, more = [], 0
    for slot, tallies in zip(menu.slots, tally.choices, strict=True):
        found = _rows(slot, tallies, None)
        rows += [[slot.name, *row] for row in found[:room]]
        more += len(found[room:])
    for interval, value in zip(menu.ranges, tally.values, strict=True):
        rows.append([interval.name, *_value_cells(value)])
    return Summary(sentences, ["slot", "choice", *COLUMNS], rows, texts=2, more=more)


def _rows(slot: Slot, tallies: list[ChoiceTally], shares: list[float] | None) -> list[list[str]]:
    """One row for each choice of a slot, the most frequent first.

    ``shares`` are the probabilities of the active choices at the next decision.
    """
    known = tallies + [ChoiceTally()] * (len(slot.choices) - len(tallies))
    total = sum(one.decisions for one in known)
    coming = iter(shares or ())
    rows = []
    for choice, tally in zip(slot.choices, known, strict=True):
        active = choice.status == "active"
        name = choice.name if active else f"{choice.name} ({choice.status})"
        cells = [name, *_cells(tally, total)]
        if shares is not None:
            cells.append(percentage(next(coming) if active else 0.0))
        rows.append((-tally.decisions, cells))
    # The sort keeps the order of actions that were decided equally often.
    return [cells for _, cells in sorted(rows, key=lambda row: row[0])]


def _cells(tally: ChoiceTally, total: int) -> list[str]:
    share = tally.decisions / total if total else None
    return [
        f"{tally.decisions:,}",
        percentage(share),
        f"{tally.rows:,}",
        number(tally.mean),
        number(tally.standard_error, 2),
    ]


def _value_cells(tally: ValueTally) -> list[str]:
    if tally.decisions == 0:
        return ["–", "0", "–", "–", "–", "–"]
    mean = tally.total / tally.decisions
    values = f"{tally.lowest:.3g} to {tally.highest:.3g}, mean {mean:.3g}"
    return [values, f"{tally.decisions:,}", "–", "–", "–", "–"]


def _policy(settings: Settings) -> str:
    return PolicySpecification(settings.policy).title


def _actions(menu: ActionSpec) -> str:
    if menu.plain:
        return counted(len(menu.active[0]), "action")
    slots = counted(len(menu.slots) + len(menu.ranges), "slot")
    joint = math.prod(map(len, menu.active))
    return slots if menu.ranges else f"{slots} with {joint:,} joint actions"


def _context(settings: Settings) -> str:
    names = settings.context.names
    return f"context: {', '.join(names)}" if names else "no context"
