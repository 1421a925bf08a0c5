"""A log as a person wants to see it."""

from typing import TYPE_CHECKING

import numpy as np

from submax.core.numerics.standard_error import standard_error
from submax.core.summary import LINES, Summary, counted, number, percentage

if TYPE_CHECKING:
    from submax.evaluation.logs.log import Log

MOST_NOTES = 3


def log_summary(log: "Log") -> Summary:
    """Actions with counts, shares and mean rewards; rewards, contexts and propensities in words."""
    menu, context = log.schema.menu, log.schema.context
    fields = ", ".join(context.names) or "no context"
    mean = number(float(log.reward.mean()) if len(log) else None)
    error = number(standard_error(log.reward), 2)
    sentences = [
        f"Log of {counted(len(log), 'row')}; context: {fields}",
        f"{log.schema.rewards['kind']} rewards, mean {mean} ± {error} (standard error)",
        _propensities(log),
        *log.notes[:MOST_NOTES],
    ]
    columns = ["rows", "share", "mean reward", "± s.e."]
    if menu.plain:
        return Summary(sentences, ["action", *columns], _rows(log, 0))
    parts = len(menu.slots) + len(menu.ranges)
    room = max(1, (LINES - len(sentences) - 2) // parts)
    rows, more = [], 0
    for number_of_slot, slot in enumerate(menu.slots):
        found = _rows(log, number_of_slot)
        rows += [[slot.name, *row] for row in found[:room]]
        more += len(found[room:])
    for place, interval in enumerate(menu.ranges, start=len(menu.slots)):
        rows.append([interval.name, *_value_cells(log, place)])
    return Summary(sentences, ["slot", "choice", *columns], rows, texts=2, more=more)


def _rows(log: "Log", slot: int) -> list[list[str]]:
    """The choices of a slot, the most frequent first."""
    choices = log.schema.menu.slots[slot].choices
    chosen = log.action[:, slot].astype(np.int64)
    counts = np.bincount(chosen, minlength=len(choices))
    sums = np.bincount(chosen, log.reward, minlength=len(choices))
    squares = np.bincount(chosen, log.reward**2, minlength=len(choices))
    rows = []
    for place in np.argsort(-counts, kind="stable"):
        count = int(counts[place])
        mean = sums[place] / count if count else None
        error = None
        if count > 1:
            spread = max(squares[place] - sums[place] ** 2 / count, 0.0)
            error = float(np.sqrt(spread / (count - 1) / count))
        share = percentage(count / len(log) if len(log) else None)
        rows.append([choices[place].name, f"{count:,}", share, number(mean), number(error, 2)])
    return rows


def _value_cells(log: "Log", place: int) -> list[str]:
    values = log.action[:, place].astype(np.float64)
    if not len(values):
        return ["–", "0", "–", "–", "–"]
    told = f"{values.min():.3g} to {values.max():.3g}, mean {values.mean():.3g}"
    return [told, f"{len(values):,}", "–", "–", "–"]


def _propensities(log: "Log") -> str:
    missing = int(np.isnan(log.propensity).sum())
    guessed = int(log.estimated.sum())
    if missing == len(log):
        return "no propensities"
    known = log.propensity[~np.isnan(log.propensity)]
    told = f"propensities from {number(float(known.min()))} to {number(float(known.max()))}"
    told += f", {guessed:,} of them estimated" if guessed else ""
    return told + (f", {missing:,} missing" if missing else "")
