"""The first pass over a log that is read in parts: vocabulary, counts and a sample of rows."""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.evaluation.logs.log import Log
from submax.evaluation.parts.recoding import common_schema, joined, recoded
from submax.evaluation.parts.row_hash import uniform_of
from submax.evaluation.parts.unit import Unit
from submax.schema.schema import Schema

UNIT_BITS = 40
"""The number of a row in its unit takes this many bits of the number that is hashed."""


class UnitScan(NamedTuple):
    """What one unit holds.

    ``rows`` can be used. ``taken`` has for each slot the choices that they took. ``rewards`` and
    ``propensities`` are the lowest and highest ones, ``times`` the first and the last time, if
    there is a column of times. ``sample`` are rows with a small ``key``, and ``place`` their
    numbers in the unit.
    """

    rows: int
    schema: Schema
    taken: tuple[frozenset[str], ...]
    rewards: tuple[float, float]
    propensities: tuple[float, float]
    times: tuple[Any, Any] | None
    notes: tuple[str, ...]
    digest: bytes
    sample: Log
    key: Floats
    place: Integers


def scan_unit(
    unit: Unit,
    reading: Mapping[str, Any],
    columns: list[str],
    time: str | None,
    share: float,
    first: int = 0,
) -> UnitScan | None:
    """Read a unit and return what it holds, without its ``first`` rows; None if it has no rows.

    About a ``share`` of the rows are put into the sample. ``time`` is the column of times, if any.
    """
    found: list[UnitScan] = []
    begin = 0
    for log, batch in unit.logs(reading, columns):
        number = np.arange(begin, begin + len(log))
        begin += len(log)
        log, number = log.rows(number >= first), number[number >= first]
        if len(log):
            _check(log)
            found.append(_scanned(log, number, unit, share, _times(batch, time)))
    return joined_scans(found) if found else None


def _scanned(
    log: Log, number: Integers, unit: Unit, share: float, times: tuple[Any, Any] | None
) -> UnitScan:
    key = uniform_of((unit.number << UNIT_BITS) + number, 0)
    sampled = key < share
    taken = tuple(
        frozenset(slot.choices[place].name for place in np.unique(column).astype(np.int64))
        for slot, column in zip(log.schema.menu.slots, log.action.T, strict=False)
    )
    return UnitScan(
        len(log),
        log.schema,
        taken,
        (float(log.reward.min()), float(log.reward.max())),
        (float(log.propensity.min()), float(log.propensity.max())),
        times,
        log.notes,
        bytes.fromhex(log.fingerprint),
        log.rows(sampled),
        key[sampled],
        number[sampled],
    )


def joined_scans(found: Sequence[UnitScan]) -> UnitScan:
    """Return what several parts hold, in their order; refuse times that go back."""
    for one, after in pairwise(found):
        if one.times is not None and after.times is not None and after.times[0] < one.times[1]:
            raise InputError(
                f"the times of the log go back from {one.times[1]} to {after.times[0]} between "
                "parts; parts in the order of time are allowed: sort the rows before writing them, "
                "or name the files in the order of time"
            )
    schema = common_schema([one.schema for one in found])
    ends = [one.times for one in found if one.times is not None]
    slots = range(len(schema.menu.slots))
    return UnitScan(
        sum(one.rows for one in found),
        schema,
        tuple(frozenset().union(*(one.taken[slot] for one in found)) for slot in slots),
        (min(one.rewards[0] for one in found), max(one.rewards[1] for one in found)),
        (min(one.propensities[0] for one in found), max(one.propensities[1] for one in found)),
        (ends[0][0], ends[-1][1]) if ends else None,
        tuple(dict.fromkeys(note for one in found for note in one.notes)),
        hashlib.sha256(b"".join(one.digest for one in found)).digest(),
        joined([recoded(one.sample, schema) for one in found]),
        np.concatenate([one.key for one in found]),
        np.concatenate([one.place for one in found]),
    )


def _times(batch: Any, column: str | None) -> tuple[Any, Any] | None:
    if column is None:
        return None
    ends = pc.min_max(batch.column(column)).as_py()
    return ends["min"], ends["max"]


def _check(log: Log) -> None:
    """Refuse what sums over parts cannot evaluate."""
    reasons = {
        "clusters (their rows may be in several parts)": log.cluster is not None,
        "counts of decisions": log.count is not None,
        "sessions": log.session is not None,
        "covariates": log.covariates is not None,
        "sampling weights": log.sampling_weight is not None,
        "several rewards": log.outcomes is not None,
        "real-valued actions": bool(log.schema.menu.ranges),
        "rows without a propensity": bool(np.isnan(log.propensity).any()),
    }
    for reason, holds in reasons.items():
        if holds:
            raise InputError(
                f"this log has {reason}, and cannot be read in parts; it is allowed in memory: "
                "read it whole (--read whole, Log.read)"
            )
