"""Logs whose rows stand for many equal decisions."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.evaluation.logs.splitting import By, check_split, chosen_rows

if TYPE_CHECKING:
    from submax.evaluation.logs.log import Log

MOST_EXPANDED = 20_000_000
"""Decisions to which a log is expanded at most, to learn from it: their columns take a few GB."""


class DividedLog(NamedTuple):
    """A log whose decisions are divided into parts; ``part [n]`` is the part of each row.

    ``number [n]`` is the number of the row, in the log that was divided, from which a row is.
    """

    log: "Log"
    part: NDArray[np.int8]
    number: Integers


def divided_by_split(log: "Log", share: float, by: By, seed: int) -> DividedLog:
    """Return the rows of the first part (0) of a split, and those of the rest (1).

    Decisions are split, not rows: a row that stands for 1000 decisions can have 480 of them in the
    first part and 520 in the rest. Clusters are kept whole in a random split.
    """
    count = _counts(log)
    check_split(share, by, seed, log.decisions)
    if by == "random" and log.cluster is not None:
        first = chosen_rows(len(log), log.cluster, share, by, seed)
        return DividedLog(log, np.where(first, 0, 1).astype(np.int8), np.arange(len(log)))
    wanted = min(max(round(share * count.sum()), 1), round(count.sum()) - 1)
    if by == "time":
        before = np.cumsum(count) - count
        taken = np.clip(wanted - before, 0, count)
    else:
        rng = np.random.default_rng(seed)
        taken = rng.multivariate_hypergeometric(
            count.astype(np.int64), wanted, method="marginals"
        ).astype(np.float64)
    return divided_counts(log, np.stack([taken, count - taken]))


def order_notes(log: "Log", first: Booleans, by: By) -> Iterator[str]:
    """Yield a sentence if a split by time gave the two parts different actions.

    The rows of a table of totals are often in the order of the actions, not in that of time.
    """
    if log.count is None or by != "time" or not first.any():
        return
    parts = [{tuple(row) for row in log.action[part]} for part in (first, ~first)]
    if parts[0] != parts[1]:
        yield (
            "the rows to learn from, the first ones of this table of counts, and the rows to "
            "evaluate on took different actions; a split by time is right only if the rows are in "
            'the order of time: otherwise give --by random (by="random")'
        )


def divided_by_fold(log: "Log", folds: int) -> DividedLog:
    """Return the log with every decision in a random fold, as many rows as needed.

    Without this a fold would contain all of the equal decisions of a row, and the model that
    predicts them would never have met any of them.
    """
    count = _counts(log)
    rng = np.random.default_rng(len(count))
    drawn = rng.multinomial(count.astype(np.int64), np.full(folds, 1 / folds)).T
    found = divided_counts(log, drawn.astype(np.float64))
    return found._replace(log=replace(found.log, fold=found.part))


def expanded(log: "Log") -> "Log":
    """Return the log with a row for every decision."""
    if log.count is None:
        return log
    if log.decisions > MOST_EXPANDED:
        raise InputError(
            f"the log stands for {log.decisions} decisions, and a policy can learn from up to "
            f"{MOST_EXPANDED} of them: divide the counts by a number, or give a policy that has "
            "learned before"
        )
    rows = np.repeat(np.arange(len(log)), log.count.astype(np.int64))
    return replace(log.rows(rows), count=None)


def _counts(log: "Log") -> Floats:
    return np.ones(len(log)) if log.count is None else log.count


def divided_counts(log: "Log", counts: Floats) -> DividedLog:
    """Return the log with the ``counts [parts, N]`` of each part; rows without any are left out."""
    kept: Booleans = counts.T.ravel() > 0
    number = np.repeat(np.arange(len(log)), len(counts))[kept]
    part = np.tile(np.arange(len(counts), dtype=np.int8), len(log))[kept]
    return DividedLog(replace(log.rows(number), count=counts.T.ravel()[kept]), part, number)
