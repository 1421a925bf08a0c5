"""Divides a log into several parts of about equal size."""

import numpy as np

from submax.core.arrays import Integers
from submax.evaluation.logs.counted import DividedLog, divided_counts
from submax.evaluation.logs.log import Log
from submax.evaluation.logs.splitting import By


def divided(log: Log, parts: int, by: By, seed: int) -> DividedLog:
    """Return the log with each decision in one of several ``parts``, numbered from 0.

    Parts by time are consecutive; the others are random. A session is in one part, and so is a
    cluster if parts are random. Equal decisions of one row can be in different parts.
    """
    rng = np.random.default_rng(seed)
    if log.count is not None and (by == "time" or log.cluster is None):
        if by == "time":
            ends = log.decisions * np.arange(parts + 1) / parts
            before = np.cumsum(log.count) - log.count
            taken = np.diff(np.clip(np.round(ends)[:, None] - before, 0, log.count), axis=0)
        else:
            chances = np.full(parts, 1 / parts)
            taken = rng.multinomial(log.count.astype(np.int64), chances).T.astype(np.float64)
        return divided_counts(log, taken)
    rows = np.arange(len(log))
    if by == "time":
        place = rows if log.session is None else _first_rows(log.session)
        part = place * parts // len(log)
    else:
        unit = rows if log.cluster is None else log.cluster
        units = int(unit.max()) + 1
        part = (rng.permutation(units) * parts // units)[unit]
    return DividedLog(log, part.astype(np.int8), rows)


def _first_rows(session: Integers) -> Integers:
    """Return the number of the first row of the session of each row."""
    first: Integers = np.unique(session, return_index=True)[1][session]
    return first
