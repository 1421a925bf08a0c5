"""A log that is read in parts and is never in memory as a whole."""

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np

from submax.core.arrays import Integers
from submax.core.checks import whole_number
from submax.core.errors import InputError
from submax.core.problem import Problem
from submax.evaluation.logs.log import Log
from submax.evaluation.parts.recoding import joined, recoded
from submax.evaluation.parts.scan import UnitScan, joined_scans, scan_unit
from submax.evaluation.parts.unit import Unit, units_of
from submax.evaluation.reading.action_feature_table import described_menu, read_action_features
from submax.evaluation.reading.columns.column_names import find_columns
from submax.schema.schema import Schema
from submax.simulation.runner import available_cores, dask_executor, local_executor

SAMPLE_ROWS = 1 << 19
"""Rows of the sample on which policies, models of rewards and thresholds are fitted."""
SPARE = 6.0
"""The sample is first drawn larger by this many standard deviations of its size, so that it is
hardly ever too small."""
FEWEST_PARALLEL = 1_500_000
"""With fewer rows the work is done in this process: starting others would take longer."""


@dataclass(frozen=True, eq=False)
class PartedLog:
    """A log of Parquet files whose rows are read again whenever they are needed.

    Memory does not grow with the number of rows. ``units`` are read by ``jobs`` processes, or by
    the workers of a Dask ``scheduler`` that see the same files. ``first_rows`` are the numbers of
    the first rows of the units, from 0. ``sample`` are random rows, of which ``numbers`` are the
    numbers in the log; up to ``SAMPLE_ROWS`` rows they are all.
    """

    schema: Schema
    units: list[Unit]
    scans: list[UnitScan]
    first_rows: list[int]
    columns: list[str]
    reading: Mapping[str, Any]
    sample: Log
    numbers: Integers
    notes: tuple[str, ...]
    jobs: int
    scheduler: str | None
    time: str | None

    @classmethod
    def open(
        cls,
        source: str | Path,
        *,
        columns: Mapping[str, Any] | None = None,
        jobs: int | None = None,
        scheduler: str | None = None,
        **reading: Any,
    ) -> Self:
        """Read a Parquet file, or a folder or pattern of them, once, and remember what it holds.

        ``columns`` and ``reading`` are those of ``Log.read``. ``jobs`` is the number of processes,
        by default one for each core; ``scheduler`` is the address of a Dask cluster.
        """
        units, used = units_of(source, columns or {})
        time = find_columns(used, columns or {}).time
        options = {"columns": columns or {}, **reading}
        jobs = available_cores() if jobs is None else jobs
        whole_number("jobs", jobs, at_least=1)
        found = _scanned(units, (options, used, time), jobs, scheduler)
        pairs = [(unit, one) for unit, one in zip(units, found, strict=True) if one is not None]
        if not pairs:
            raise InputError(f"{str(source)!r} has no rows that can be used: check the files")
        scans = [one for _, one in pairs]
        whole = joined_scans(scans)
        schema = reading.get("schema") or _described(whole.schema, reading)
        first = np.concatenate([[0], np.cumsum([one.rows for one in scans])])
        sample, numbers = _sample(scans, schema, first)
        kept = [one._replace(sample=sample.rows(np.zeros(0, dtype=np.int64))) for one in scans]
        options = {**options, "schema": schema}
        for declared in ("actions", "context", "rewards", "action_features"):
            options.pop(declared, None)
        return cls(
            schema,
            [unit for unit, _ in pairs],
            kept,
            first[:-1].tolist(),
            used,
            options,
            sample,
            numbers,
            whole.notes,
            jobs,
            scheduler,
            time,
        )

    def __len__(self) -> int:
        return sum(one.rows for one in self.scans)

    @property
    def problem(self) -> Problem:
        """The problem that policies are initialized with."""
        return self.schema.problem

    @property
    def fingerprint(self) -> str:
        """A hash of the contexts, actions and rewards of all rows, by parts."""
        return hashlib.sha256(b"".join(one.digest for one in self.scans)).hexdigest()

    def scans_from(self, first: int) -> list[UnitScan]:
        """Return what the rows from the ``first`` one on hold, by units."""
        found = []
        for unit, begin, scan in zip(self.units, self.first_rows, self.scans, strict=True):
            if begin >= first:
                found.append(scan)
            elif begin + scan.rows > first:
                rest = scan_unit(
                    unit, self.reading, self.columns, self.time, share=0.0, first=first - begin
                )
                found += [] if rest is None else [rest]
        return found


def _scanned(
    units: list[Unit], how: tuple[Any, ...], jobs: int, scheduler: str | None
) -> list[UnitScan | None]:
    """Return what each unit holds, with its part of the sample; None has no row to use."""
    rows = sum(unit.rows for unit in units)
    share = (SAMPLE_ROWS + SPARE * SAMPLE_ROWS**0.5) / max(rows, 1)
    with executed(jobs if rows >= FEWEST_PARALLEL else 1, scheduler) as run:
        return list(run(scan_unit, [(unit, *how, share) for unit in units]))


def _described(schema: Schema, reading: Mapping[str, Any]) -> Schema:
    """Return the schema with the features of its actions, which one part may not have had."""
    given = reading.get("action_features")
    if given is None:
        return schema
    menu, _ = described_menu(schema.menu, read_action_features(given))
    return msgspec.structs.replace(schema, menu=menu)


def _sample(scans: list[UnitScan], schema: Schema, first: Integers) -> tuple[Log, Integers]:
    """Return the rows with the smallest keys, in the order of the log, and their numbers."""
    sample = joined([recoded(one.sample, schema) for one in scans])
    number = np.concatenate(
        [begin + one.place for one, begin in zip(scans, first[:-1], strict=True)]
    )
    if len(number) > SAMPLE_ROWS:
        key = np.concatenate([one.key for one in scans])
        chosen = np.sort(np.argsort(key, kind="stable")[:SAMPLE_ROWS])
        sample, number = sample.rows(chosen), number[chosen]
    return sample, number


Run = Callable[[Callable[..., Any], list[tuple[Any, ...]]], Iterator[Any]]
"""Calls a function for each tuple of arguments, and yields the results in their order."""


@contextmanager
def executed(jobs: int, scheduler: str | None) -> Iterator[Run]:
    """Yield a function that runs tasks: here, in local processes, or on a Dask cluster."""
    if scheduler is None and jobs == 1:
        yield lambda function, tasks: (function(*task) for task in tasks)
        return
    chosen = local_executor(jobs) if scheduler is None else dask_executor(scheduler)
    with chosen as executor:

        def run(function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> Iterator[Any]:
            # A result that was yielded is not kept, so that memory does not grow with the tasks.
            futures = deque(executor.submit(function, *task) for task in tasks)
            while futures:
                yield futures.popleft().result()

        yield run
