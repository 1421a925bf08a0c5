"""The text and HTML form of a log."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats
from submax.core.summary import LINES, Summary, counted, listed, number, percentage
from submax.evaluation.contracts.counts import mean
from submax.evaluation.intervals.interval_method import standard_error_of_mean
from submax.schema.schema import Schema

MOST_NOTES = 3
"""Notes that are part of the text; all of them are in the ``notes`` of the log."""


def log_summary(
    schema: Schema,
    action: NDArray[Any],
    reward: Floats,
    propensity: Floats,
    estimated: Booleans,
    notes: Sequence[str],
    count: Floats | None = None,
) -> Summary:
    """Return a table of the actions with counts, shares and mean rewards, below a few sentences.

    The arguments are the fields of a ``Log``. The sentences are about rows, context, rewards and
    propensities.
    """
    menu = schema.menu
    fields = listed(schema.context.names) or "no context"
    average = number(mean(reward, count) if len(reward) else None)
    error = number(standard_error_of_mean(reward, count) if len(reward) > 1 else None, 2)
    stands = "" if count is None else f" that stand for {int(count.sum()):,} decisions"
    sentences = [
        f"Log of {counted(len(reward), 'row')}{stands}; context: {fields}",
        f"{schema.rewards['kind']} rewards, mean {average} ± {error} (standard error)",
        _propensity_sentence(propensity, estimated),
        *notes[:MOST_NOTES],
    ]
    columns = ["rows", "share", "mean reward", "± s.e."]
    if menu.plain:
        cells = _choice_cells(_choice_names(schema, 0), action[:, 0], reward, count)
        return Summary(sentences, ["action", *columns], cells)
    parts = len(menu.slots) + len(menu.ranges)
    lines_per_part = max(1, (LINES - len(sentences) - 2) // parts)
    rows, more = [], 0
    for place, slot in enumerate(menu.slots):
        cells = _choice_cells(_choice_names(schema, place), action[:, place], reward, count)
        rows += [[slot.name, *row] for row in cells[:lines_per_part]]
        more += len(cells[lines_per_part:])
    for place, interval in enumerate(menu.ranges, start=len(menu.slots)):
        rows.append([interval.name, *_value_cells(action[:, place].astype(np.float64))])
    return Summary(sentences, ["slot", "choice", *columns], rows, texts=2, more=more)


def _choice_names(schema: Schema, slot: int) -> list[str]:
    return [choice.name for choice in schema.menu.slots[slot].choices]


def _choice_cells(
    names: list[str], action: NDArray[Any], reward: Floats, count: Floats | None
) -> list[list[str]]:
    """Return a line of cells for each choice of a slot, the most frequent choice first."""
    chosen = action.astype(np.int64)
    weight = np.ones(len(reward)) if count is None else count
    counts = np.bincount(chosen, weight, minlength=len(names))
    sums = np.bincount(chosen, weight * reward, minlength=len(names))
    squares = np.bincount(chosen, weight * reward**2, minlength=len(names))
    rows = []
    for place in np.argsort(-counts, kind="stable"):
        taken = int(counts[place])
        average = sums[place] / taken if taken else None
        error = None
        if taken > 1:
            spread = max(squares[place] - sums[place] ** 2 / taken, 0.0)
            error = float(np.sqrt(spread / (taken - 1) / taken))
        share = percentage(taken / float(weight.sum()) if len(reward) else None)
        rows.append([names[place], f"{taken:,}", share, number(average), number(error, 2)])
    return rows


def _value_cells(values: Floats) -> list[str]:
    """Return a line of cells for a real-valued part of the action."""
    if not len(values):
        return ["–", "0", "–", "–", "–"]
    distribution = f"{values.min():.3g} to {values.max():.3g}, mean {values.mean():.3g}"
    return [distribution, f"{len(values):,}", "–", "–", "–"]


def _propensity_sentence(propensity: Floats, estimated: Booleans) -> str:
    missing = int(np.isnan(propensity).sum())
    if missing == len(propensity):
        return "no propensities"
    known = propensity[~np.isnan(propensity)]
    sentence = f"propensities from {number(float(known.min()))} to {number(float(known.max()))}"
    if estimated.any():
        sentence += f", {int(estimated.sum()):,} of them estimated"
    return sentence + (f", {missing:,} missing" if missing else "")
