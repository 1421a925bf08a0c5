"""A log that is read in batches and is never in memory as a whole."""

import hashlib
import shutil
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

from submax.core.arrays import Floats, Integers
from submax.core.checks import whole_number
from submax.core.errors import InputError, one_line
from submax.core.problem import Problem
from submax.evaluation.cells import BadRows, CheckedBatch, numbers, rank, times
from submax.evaluation.columns import find_columns
from submax.evaluation.log import Log
from submax.evaluation.reading import NoRowsError, described_menu, read_action_features
from submax.evaluation.sources import READ_ERRORS, TextFormat, files_of, open_source
from submax.evaluation.targets import COLUMNS, GivenProbabilities, TargetPolicy, probability_columns
from submax.schema.actions import ActionSpec, ChoiceIndices
from submax.schema.context import Category, ContextSchema, Field
from submax.schema.rewards import rewards_of
from submax.schema.schema import Schema
from submax.simulation.runner import available_cores, dask_executor, local_executor

STEP = np.uint64(0x9E3779B97F4A7C15)
MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
"""Constants of the generator SplitMix64 (Steele, Lea and Flood, 2014)."""


def uniform_of(number: Integers, seed: int) -> Floats:
    """Return a pseudo-random number from 0 to 1 for the number of each row.

    >>> bool(uniform_of(np.arange(10), 0)[3] == uniform_of(np.array([3]), 0)[0])
    True
    """
    with np.errstate(over="ignore"):
        mixed: NDArray[np.uint64] = number.astype(np.uint64) + np.uint64(seed + 1) * STEP
        mixed = (mixed ^ (mixed >> np.uint64(30))) * MIXERS[0]
        mixed = (mixed ^ (mixed >> np.uint64(27))) * MIXERS[1]
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


def common_schema(schemas: Sequence[Schema]) -> Schema:
    """Return the schema with the choices, categories and rewards of all parts of a log."""
    first = schemas[0]
    if all(one == first for one in schemas):
        return first
    menu = first.menu
    if any(one.menu != menu for one in schemas):
        names = {
            slot.name: _sorted([[c.name for c in one.menu.slots[place].choices] for one in schemas])
            for place, slot in enumerate(menu.slots)
        }
        menu = ActionSpec.of(next(iter(names.values())) if menu.plain else names)
    fields: dict[str, Field] = {}
    for place, name in enumerate(first.context.names):
        field = first.context.fields[place]
        if isinstance(field, Category) and field.default is None:
            parts = [one.context.fields[place] for one in schemas]
            field = Category(
                tuple(_sorted([one.values for one in parts if isinstance(one, Category)]))
            )
        fields[name] = field
    kinds = {str(one.rewards["kind"]) for one in schemas}
    rewards = first.rewards if len(kinds) == 1 else rewards_of("continuous")
    return Schema(menu=menu, context=ContextSchema.of(fields), rewards=rewards)


def _sorted(lists: Sequence[Sequence[str]]) -> list[str]:
    return sorted({name for one in lists for name in one}, key=rank)


def recoded(log: Log, schema: Schema) -> Log:
    """Return a log whose indices of choices and categories are those of another schema."""
    if log.schema == schema:
        return log
    action, context = log.action.copy(), log.context.copy()
    slots = zip(log.schema.menu.slots, schema.menu.slots, strict=True)
    places = []
    for slot, (old, new) in enumerate(slots):
        index = {choice.name: place for place, choice in enumerate(new.choices)}
        places.append(np.array([index[choice.name] for choice in old.choices]))
        action[:, slot] = places[-1][action[:, slot].astype(np.int64)]
    fields = zip(log.schema.context.fields, schema.context.fields, strict=True)
    for place, (field, new_field) in enumerate(fields):
        if isinstance(field, Category) and isinstance(new_field, Category):
            code = np.array([new_field.values.index(value) for value in field.values])
            context[:, place] = code[context[:, place].astype(np.int64)]
    everything = log.schema.menu.active
    sets = [
        schema.menu.active if one == everything else _moved(one, places)
        for one in log.eligible_sets
    ]
    return replace(log, schema=schema, action=action, context=context, eligible_sets=tuple(sets))


def _moved(eligible: ChoiceIndices, places: Sequence[np.ndarray]) -> ChoiceIndices:
    pairs = zip(eligible, places, strict=True)
    return tuple(tuple(sorted(place[list(one)].tolist())) for one, place in pairs)


def joined(logs: Sequence[Log]) -> Log:
    """Return the rows of several logs with the same schema as one log."""
    first = logs[0]
    sets: dict[ChoiceIndices, int] = {}
    eligible = []
    for log in logs:
        number = np.array([sets.setdefault(one, len(sets)) for one in log.eligible_sets])
        eligible.append(number[log.eligible_set].astype(np.int32))
    slots = [one.slot_propensity for one in logs if one.slot_propensity is not None]
    columns = [one.probability for one in logs if one.probability is not None]
    return replace(
        first,
        context=np.concatenate([one.context for one in logs]),
        action=np.concatenate([one.action for one in logs]),
        reward=np.concatenate([one.reward for one in logs]),
        propensity=np.concatenate([one.propensity for one in logs]),
        estimated=np.concatenate([one.estimated for one in logs]),
        eligible_set=np.concatenate(eligible),
        eligible_sets=tuple(sets),
        slot_propensity=np.concatenate(slots) if slots else None,
        probability=np.concatenate(columns) if columns else None,
        notes=(),
    )


UNIT_ROWS = 1 << 20
"""Row groups of a file form a unit of about this many rows: one task of a process."""
PART_ROWS = 1 << 17
"""Rows that are in memory together. It does not change any result beyond rounding."""


class Unit(NamedTuple):
    """Consecutive ``groups`` of rows of the file at ``path``, which has ``rows`` rows in them."""

    number: int
    path: str
    groups: tuple[int, ...]
    rows: int

    def logs(self, reading: Mapping[str, Any], columns: list[str]) -> Iterator[tuple[Log, Any]]:
        """Yield the rows in parts, each as a log and as it is in the file.

        ``reading`` are options of ``Log.read``. A part without a row that can be used is left
        out.
        """
        file = parquet.ParquetFile(self.path, pre_buffer=False)
        try:
            for batch in file.iter_batches(PART_ROWS, row_groups=self.groups, columns=columns):
                try:
                    yield Log.read(pa.Table.from_batches([batch]), **reading), batch
                except NoRowsError:
                    continue
                except InputError as error:
                    raise InputError(f"{self.path}: {error}") from error
        except READ_ERRORS as error:
            raise InputError(f"cannot read {self.path!r}: {error}") from error


class TemporaryFolder:
    """A folder that is removed when nothing refers to it any more, or when the process ends."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix="submax-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def as_parquet(
    source: str | Path, columns: Mapping[str, Any], text: TextFormat, skip: bool, folder: Path
) -> tuple[Path, list[str]]:
    """Write the rows of CSV files or JSON lines as one Parquet file, batch by batch.

    Return the file, and sentences about rows that were skipped. Numbers of the context and times
    are written as numbers, and all else as it is: a log in memory has the same values. Memory does
    not grow with the rows.
    """
    opened = open_source(source, text)
    names = find_columns(opened.columns, columns)
    reading = {one: numbers for one in names.context.values() if one in opened.numeric}
    reading |= {} if names.time is None else {names.time: times}
    path, bad, rows, writer = folder / "log.parquet", BadRows(), 0, None
    for batch in opened.batches(names.used, bad):
        checked = CheckedBatch(batch, bad, rows + 1, np.ones(batch.num_rows, dtype=bool))
        rows += batch.num_rows
        arrays = {name: batch.column(name) for name in names.used}
        for name, read in reading.items():
            found = read(arrays[name])
            checked.note(name, "is not a finite number", found.wrong)
            arrays[name] = pa.array(found.values, mask=found.missing | found.wrong)
        bad.rows += int(np.count_nonzero(checked.bad))
        good = pa.RecordBatch.from_pydict(arrays).filter(pa.array(~checked.bad))
        try:
            writer = writer or parquet.ParquetWriter(path, good.schema)
            writer.write_table(pa.Table.from_batches([good]).cast(writer.schema))
        except pa.ArrowException as error:
            raise InputError(
                f"the columns of {opened.name} change their kind ({one_line(error)}), and cannot "
                "be read in parts: read it whole (--read whole, Log.read)"
            ) from error
    if not skip:
        bad.refuse(opened.name, rows)
    if writer is None:
        raise NoRowsError(f"{opened.name} has no rows that can be used: check the file")
    writer.close()
    skipped = f"{bad.count} bad rows were skipped: " + "; ".join(bad.sentences())
    return path, [skipped] if bad.count else []


def is_parquet(source: str | Path) -> bool:
    """Return whether all files of a log are Parquet files; those that are not there count."""
    for path in files_of(source) or [Path(source)]:
        if path.is_file():
            with path.open("rb") as file:
                if file.read(4) != b"PAR1":
                    return False
    return True


def units_of(source: str | Path, columns: Mapping[str, Any]) -> tuple[list[Unit], list[str]]:
    """Return the units of Parquet files, and the columns that have to be read.

    ``source`` is a file, a folder or a pattern; ``columns`` maps roles to columns.
    """
    found: list[Unit] = []
    used: list[str] | None = None
    for path in files_of(source) or [Path(source)]:
        file = _opened(path)
        mine = find_columns(file.schema_arrow.names, columns).used
        if used is not None and set(mine) != set(used):
            raise InputError(
                f"{str(path)!r} has other columns than the files before; the same columns are "
                "allowed: name only files of one kind, such as 'logs/*.parquet'"
            )
        used = mine
        found += _units(str(path), file.metadata, len(found))
    return found, used or []


def _opened(path: Path) -> Any:
    """Return a Parquet file; refuse one that is damaged, and none."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}: check the path")
    try:
        return parquet.ParquetFile(path, pre_buffer=False)
    except READ_ERRORS as error:
        raise InputError(
            f"{str(path)!r} is a damaged Parquet file ({error}), and a whole one is needed: write "
            "the file again"
        ) from error


def _units(path: str, metadata: Any, first: int) -> list[Unit]:
    found: list[Unit] = []
    groups: list[int] = []
    rows = 0
    for group in range(metadata.num_row_groups):
        groups.append(group)
        rows += metadata.row_group(group).num_rows
        if rows >= UNIT_ROWS or group == metadata.num_row_groups - 1:
            found.append(Unit(first + len(found), path, tuple(groups), rows))
            groups, rows = [], 0
    return found


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
    numbers in the log; up to ``SAMPLE_ROWS`` rows they are all. A log that was not Parquet has a
    ``folder`` of its own, which lives as long as the log.
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
    folder: TemporaryFolder | None = None

    @classmethod
    def open(
        cls,
        source: str | Path,
        *,
        columns: Mapping[str, Any] | None = None,
        jobs: int | None = None,
        scheduler: str | None = None,
        separator: str = ",",
        decimal: str = ".",
        **reading: Any,
    ) -> Self:
        """Read a file, or a folder or pattern of them, once, and remember what it holds.

        ``columns`` and ``reading`` are those of ``Log.read``. ``jobs`` is the number of processes,
        by default one for each core; ``scheduler`` is the address of a Dask cluster. CSV files and
        JSON lines are first written as Parquet, into a temporary folder of this machine.
        """
        folder, skipped = None, list[str]()
        if not is_parquet(source):
            if scheduler is not None:
                raise InputError(
                    f"{str(source)!r} is not Parquet, and a cluster reads only Parquet files: "
                    "leave --scheduler out, or convert the log to Parquet",
                    code="not-parquet",
                )
            folder = TemporaryFolder()
            text = TextFormat(separator, decimal)
            skip = bool(reading.get("skip_bad_rows"))
            source, skipped = as_parquet(source, columns or {}, text, skip, folder.path)
        units, used = units_of(source, columns or {})
        time = find_columns(used, columns or {}).time
        options = {"columns": columns or {}, **reading}
        jobs = available_cores() if jobs is None else jobs
        whole_number("jobs", jobs, at_least=1)
        found = _scanned_units(units, (options, used, time), jobs, scheduler)
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
            (*skipped, *whole.notes),
            jobs,
            scheduler,
            time,
            folder,
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


def _scanned_units(
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


class PartedColumns(TargetPolicy):
    """The policy ``columns=PATTERN``: its probability of an action is a column of the log.

    The log is read in parts, so the probabilities are known for one part at a time: ``given`` are
    those of the rows of a part, and ``numbers`` the numbers of these rows in the whole log, in
    increasing order. Both are None until ``in_rows`` is called.
    """

    def __init__(
        self,
        pattern: str,
        given: GivenProbabilities | None = None,
        numbers: Integers | None = None,
    ) -> None:
        self.name = f"{COLUMNS}{pattern}"
        self._pattern, self._given, self._numbers = pattern, given, numbers

    @staticmethod
    def is_named(candidate: object) -> bool:
        """Return whether a candidate is a text ``columns=PATTERN``."""
        return isinstance(candidate, str) and candidate.startswith(COLUMNS)

    @classmethod
    def of(cls, candidate: str, sample: Log) -> "PartedColumns":
        """Return the policy of a text ``columns=PATTERN``; check that the log has these columns.

        ``sample`` is a sample of the rows of the log.
        """
        pattern = candidate.removeprefix(COLUMNS)
        probability_columns(sample, pattern)
        return cls(pattern)

    def in_rows(self, log: Log, numbers: Integers) -> "PartedColumns":
        """Return the policy with its probabilities in one part of a log.

        ``numbers`` are the numbers of the rows of the part in the whole log.
        """
        return PartedColumns(self._pattern, probability_columns(log, self._pattern), numbers)

    def probabilities(
        self, schema: Schema, context: NDArray[np.float32], numbers: Integers
    ) -> Floats:
        if self._given is None or self._numbers is None:
            raise InputError(
                f"{self.name} was asked for probabilities without rows of the log; it knows them "
                "for one part of the log at a time: call in_rows with the part first"
            )
        place = np.searchsorted(self._numbers, numbers)
        return self._given.probabilities(schema, context, place)
