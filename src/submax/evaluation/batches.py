"""A log that is read in batches and is never in memory as a whole."""

import hashlib
import pickle
import shutil
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import whole_number
from submax.core.errors import InputError, one_line
from submax.core.problem import Problem
from submax.evaluation.cells import BadRows, CheckedBatch, numbers, rank, times
from submax.evaluation.columns import find_columns
from submax.evaluation.diagnostics import LogSums, PolicySums, kind_of
from submax.evaluation.estimates import ComparisonOptions, applicable_estimators
from submax.evaluation.evaluator import (
    LOGGING_POLICY,
    SAMPLE_ROWS,
    Batch,
    PolicyPlan,
    Progress,
    Setup,
    Targets,
)
from submax.evaluation.evidence import LogFacts, LoggedEvidence
from submax.evaluation.intervals import BLOCKS, NEED_BLOCKS
from submax.evaluation.log import COLUMNS as LOG_COLUMNS
from submax.evaluation.log import FOLD_SEED, By, Log, Reward, check_split, uniform_of
from submax.evaluation.propensities import (
    PropensityModel,
    with_estimated_propensities,
    with_products_of_slots,
)
from submax.evaluation.reading import (
    NoRowsError,
    described_menu,
    numbered,
    read_action_features,
    read_fields,
)
from submax.evaluation.reward_models import FOLDS
from submax.evaluation.sources import READ_ERRORS, TextFormat, files_of, open_source
from submax.evaluation.sums import NO_UNITS, Units
from submax.evaluation.targets import TargetPolicy, learned_target, learns, policy_notes
from submax.schema.actions import ActionSpec, ChoiceIndices
from submax.schema.context import Category, ContextSchema, Field
from submax.schema.rewards import rewards_of
from submax.schema.schema import Schema
from submax.simulation.runner import available_cores, dask_executor, local_executor


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
    first, sets = logs[0], dict[ChoiceIndices, int]()
    eligible = []
    for log in logs:
        number = np.array([sets.setdefault(one, len(sets)) for one in log.eligible_sets])
        eligible.append(number[log.eligible_set].astype(np.int32))
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(one, name) for one in logs])
        for name in LOG_COLUMNS
        if getattr(first, name) is not None
    }
    columns["eligible_set"] = np.concatenate(eligible)
    return replace(first, **columns, eligible_sets=tuple(sets), notes=())


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

    def logs(
        self, reading: Mapping[str, Any], columns: list[str]
    ) -> Iterator[tuple[Log, Integers | None, Any]]:
        """Yield the rows in batches: as a log, with the ids of their clusters, and as in the file.

        ``reading`` are options of ``Log.read``. A batch without a row that can be used is left
        out.
        """
        file = parquet.ParquetFile(self.path, pre_buffer=False)
        try:
            for batch in file.iter_batches(PART_ROWS, row_groups=self.groups, columns=columns):
                try:
                    fields = read_fields(pa.Table.from_batches([batch]), **reading)
                except NoRowsError:
                    continue
                except InputError as error:
                    raise InputError(f"{self.path}: {error}", code=error.code) from error
                ids = fields.pop("cluster", None)
                yield Log(**fields), ids, batch
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
    for path in files_of(source):
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
    for path in files_of(source):
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
MOST_CLUSTERS = BLOCKS
"""More clusters than this are put together at random, into as many independent groups."""


class UnitScan(NamedTuple):
    """What one unit holds.

    ``rows`` can be used, and stand for ``decisions``. ``taken`` has for each slot the choices that
    they took. ``rewards [K, 2]`` are the lowest and the highest of each reward, ``times`` the first
    and the last time, if there is a column of times. ``clusters`` are the ids of clusters in the
    order in which they occur; None if there are none. ``sample`` are rows with a small ``key``,
    ``place`` their numbers in the unit, and ``ids`` those of their clusters.
    """

    rows: int
    decisions: float
    schema: Schema
    taken: tuple[frozenset[str], ...]
    rewards: Floats
    times: tuple[Any, Any] | None
    clusters: Integers | None
    notes: tuple[str, ...]
    digest: bytes
    sample: Log
    key: Floats
    place: Integers
    ids: Integers | None


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
    for log, ids, batch in unit.logs(reading, columns):
        number = np.arange(begin, begin + len(log))
        begin += len(log)
        if number[-1] >= first:
            later = number >= first
            ids = None if ids is None else ids[later]
            times = _times(batch, time)
            found.append(_scanned(log.rows(later), ids, number[later], unit, share, times))
    return joined_scans(found) if found else None


def _scanned(
    log: Log,
    ids: Integers | None,
    number: Integers,
    unit: Unit,
    share: float,
    times: tuple[Any, Any] | None,
) -> UnitScan:
    if log.session is not None:
        raise InputError(
            "this log has sessions, whose rows may be in several batches; they are allowed in "
            "memory: read it whole (--read whole, Log.read)",
            code="needs-memory",
        )
    key = uniform_of((unit.number << UNIT_BITS) + number, 0)
    sampled = key < share
    taken = tuple(
        frozenset(slot.choices[place].name for place in np.unique(column).astype(np.int64))
        for slot, column in zip(log.schema.menu.slots, log.action.T, strict=False)
    )
    rewards = log.reward[:, None] if log.outcomes is None else log.outcomes
    return UnitScan(
        len(log),
        float(log.decisions),
        log.schema,
        taken,
        np.stack([rewards.min(axis=0), rewards.max(axis=0)], axis=1),
        times,
        None if ids is None else _in_order(ids),
        log.notes,
        bytes.fromhex(log.fingerprint),
        log.rows(sampled),
        key[sampled],
        number[sampled],
        None if ids is None else ids[sampled],
    )


def _in_order(ids: Integers) -> Integers:
    """Return different ids in the order in which they occur."""
    different, first = np.unique(ids, return_index=True)
    return different[np.argsort(first)]


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
    clusters = [one.clusters for one in found if one.clusters is not None]
    rewards = np.stack([one.rewards for one in found])
    return UnitScan(
        sum(one.rows for one in found),
        sum(one.decisions for one in found),
        schema,
        tuple(frozenset().union(*(one.taken[slot] for one in found)) for slot in slots),
        np.stack([rewards[..., 0].min(axis=0), rewards[..., 1].max(axis=0)], axis=1),
        (ends[0][0], ends[-1][1]) if ends else None,
        _in_order(np.concatenate(clusters)) if clusters else None,
        tuple(one_of_each_kind([note for one in found for note in one.notes])),
        hashlib.sha256(b"".join(one.digest for one in found)).digest(),
        joined([recoded(one.sample, schema) for one in found]),
        np.concatenate([one.key for one in found]),
        np.concatenate([one.place for one in found]),
        np.concatenate([one.ids for one in found if one.ids is not None]) if clusters else None,
    )


def one_of_each_kind(notes: Sequence[str]) -> list[str]:
    """Return the first of the notes that differ in numbers and names alone."""
    found: dict[str, str] = {}
    for note in notes:
        found.setdefault(kind_of(note), note)
    return list(found.values())


def _times(batch: Any, column: str | None) -> tuple[Any, Any] | None:
    if column is None:
        return None
    ends = pc.min_max(batch.column(column)).as_py()
    return ends["min"], ends["max"]


SPARE = 6.0
"""The sample is first drawn larger by this many standard deviations of its size, so that it is
hardly ever too small."""
FEWEST_PARALLEL = 1_500_000
"""With fewer rows the work is done in this process: starting others would take longer."""


@dataclass(frozen=True, eq=False)
class PartedLog:
    """A log of files whose rows are read in batches, again whenever they are needed.

    Memory does not grow with the number of rows. ``units`` are read by ``jobs`` processes, or by
    the workers of a Dask ``scheduler`` that see the same files. ``first_rows`` are the numbers of
    the first rows of the units, from 0. ``sample`` are random rows, of which ``numbers`` are the
    numbers in the log; up to ``SAMPLE_ROWS`` rows they are all, and ``ids`` are those of their
    clusters. ``clusters`` are all ids. A log that was not Parquet has a ``folder`` of its own,
    which lives as long as the log. ``reward`` is the one of several that is evaluated, and
    ``split`` says which rows are, if not all.
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
    folder: TemporaryFolder | None
    ids: Integers | None
    clusters: Integers | None
    reward: Reward | None = None
    split: "Split | None" = None

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
        sample, numbers, ids = _sample(scans, schema, first)
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
            ids,
            whole.clusters,
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

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """The names of several rewards, if the log has them."""
        return self.sample.outcome_names

    def with_reward(self, reward: Reward) -> "PartedLog":
        """Return the log with one of several rewards, or a weighted sum of them, as its reward."""
        sample = self.sample.with_reward(reward)
        return replace(self, reward=reward, sample=sample, schema=sample.schema)

    def reward_range(self, first: int) -> tuple[float, float]:
        """Return the lowest and the highest reward of the rows from the ``first`` one on."""
        scans = self.scans_from(first)
        ends = np.stack([one.rewards for one in scans])
        low, high = ends[..., 0].min(axis=0), ends[..., 1].max(axis=0)
        if self.reward is None:
            return float(low[0]), float(high[0])
        weights = {self.reward: 1.0} if isinstance(self.reward, str) else self.reward
        places = [self.outcome_names.index(name) for name in weights]
        times = np.array(list(weights.values()), dtype=np.float64)
        both = np.stack([times * low[places], times * high[places]])
        return float(both.min(axis=0).sum()), float(both.max(axis=0).sum())

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


def _sample(
    scans: list[UnitScan], schema: Schema, first: Integers
) -> tuple[Log, Integers, Integers | None]:
    """Return the rows with the smallest keys, in the order of the log.

    Also their numbers, and the ids of their clusters.
    """
    sample = joined([recoded(one.sample, schema) for one in scans])
    pairs = zip(scans, first[:-1], strict=True)
    number = np.concatenate([begin + one.place for one, begin in pairs])
    known = [one.ids for one in scans if one.ids is not None]
    ids = np.concatenate(known) if known else None
    if len(number) > SAMPLE_ROWS:
        key = np.concatenate([one.key for one in scans])
        chosen = np.sort(np.argsort(key, kind="stable")[:SAMPLE_ROWS])
        sample, number = sample.rows(chosen), number[chosen]
        ids = None if ids is None else ids[chosen]
    return sample if ids is None else replace(sample, cluster=numbered(ids)), number, ids


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


SPLIT_SEED = 1
"""Added to the seed, so that splits are independent of the sample."""


class Split(NamedTuple):
    """Which rows policies learn from: the first ``boundary`` ones, or a random ``share``."""

    boundary: int
    share: float
    random: bool
    seed: int

    @classmethod
    def of(cls, rows: int, learning: bool, share: float, by: By, seed: int) -> "Split":
        """Return the split of a log; all rows are evaluated if no policy has to learn."""
        if not learning:
            return cls(0, 0.0, False, seed)
        check_split(share, by, seed, rows)
        boundary = 0 if by == "random" else min(max(round(share * rows), 1), rows - 1)
        return cls(boundary, share, by == "random", seed)

    def evaluated(self, number: Integers, ids: Integers | None) -> Booleans:
        """Return which rows are evaluated, by their numbers or the ids of their clusters."""
        if self.random:
            unit = number if ids is None else ids
            return uniform_of(unit, self.seed + SPLIT_SEED) >= self.share
        return number >= self.boundary


class ClusterGroups(NamedTuple):
    """The number of each cluster, or of the group of clusters to which its id is assigned."""

    ids: Integers
    numbers: Integers | None

    @classmethod
    def of(cls, ids: Integers) -> "ClusterGroups":
        """Return the numbers of clusters, given their ids in the order in which they occur."""
        if len(ids) > MOST_CLUSTERS:
            return cls(ids[:0], None)
        order = np.argsort(ids)
        return cls(ids[order], order)

    @property
    def total(self) -> int:
        """The number of groups."""
        return MOST_CLUSTERS if self.numbers is None else len(self.numbers)

    def of_ids(self, ids: Integers) -> Integers:
        """Return the group of each id."""
        if self.numbers is None:
            return (uniform_of(ids, 0) * MOST_CLUSTERS).astype(np.int64)
        return self.numbers[np.searchsorted(self.ids, ids)]


class FilePlan(NamedTuple):
    """All that a process needs to evaluate batches of a log: what was fitted to the sample.

    ``numbers`` are those of the evaluated rows of the sample, and ``folds`` the folds by which
    reward models were fitted; with clusters ``group_folds`` are those of each group. Blocks of the
    bootstrap have ``block_rows`` rows; 0 without one.
    """

    log: PartedLog
    split: Split
    logged: LoggedEvidence
    model: PropensityModel | None
    numbers: Integers
    folds: NDArray[np.int8]
    groups: ClusterGroups | None
    group_folds: NDArray[np.int8]
    facts: LogFacts
    policies: dict[str, PolicyPlan]
    setup: Setup
    block_rows: int
    blocks: int

    def fold_of(self, number: Integers, group: Integers | None) -> NDArray[np.int8]:
        """Return the model that predicts each row: for rows of the sample one fitted without it."""
        if group is not None:
            return self.group_folds[group]
        place = np.minimum(np.searchsorted(self.numbers, number), len(self.numbers) - 1)
        drawn = (uniform_of(number, FOLD_SEED) * FOLDS).astype(np.int8)
        found: NDArray[np.int8] = np.where(
            self.numbers[place] == number, self.folds[place], drawn
        ).astype(np.int8)
        return found

    def batch(self, log: Log, ids: Integers | None, number: Integers) -> Batch | None:
        """Return the rows of a batch that are evaluated, if there are any."""
        chosen = self.split.evaluated(number, ids)
        if not chosen.any():
            return None
        group = None
        if ids is not None and self.groups is not None:
            group = self.groups.of_ids(ids[chosen])
        number = number[chosen]
        log = with_estimated_propensities(log.rows(chosen), 0, self.model)
        log = replace(log, cluster=group)
        rows = self.logged.of_batch(log, number, self.fold_of(number, group), self.facts)
        units = NO_UNITS
        if group is not None and self.groups is not None:
            units = Units(group, self.groups.total, clusters=True)
        elif self.block_rows:
            block = (rows.numbers - self.split.boundary) // self.block_rows
            single = self.block_rows == 1 and rows.log.count is None
            units = Units(block, self.blocks, single=single)
        return Batch(rows, units)


BatchSums = tuple[LogSums, dict[str, PolicySums]]
"""The sums about the log, and about each policy."""


def evaluate_unit(unit: Unit, first: int, plan: FilePlan) -> BatchSums | None:
    """Return the sums over the evaluated rows of a unit; None if it has none.

    ``first`` is the number of the first row of the unit in the log.
    """
    total: BatchSums | None = None
    setup = plan.setup
    for log, ids, _ in unit.logs(plan.log.reading, plan.log.columns):
        number = np.arange(first, first + len(log))
        first += len(log)
        if plan.log.reward is not None:
            log = replace(log.with_reward(plan.log.reward), schema=plan.log.schema)
        batch = plan.batch(log, ids, number)
        if batch is not None:
            base = batch.terms(plan.policies[setup.baseline])
            policies = plan.policies.items()
            found = {name: batch.sums(one, base, setup) for name, one in policies}
            both = LogSums.of(batch.rows.log, setup.centre), found
            total = both if total is None else added(total, both)
    return total


def added(one: BatchSums, other: BatchSums) -> BatchSums:
    """Return the sums over the rows of both."""
    return one[0] + other[0], {name: sums + other[1][name] for name, sums in one[1].items()}


class FileBatches:
    """The evaluated rows of a log of files; models and thresholds are fitted to a sample."""

    def __init__(
        self,
        log: PartedLog,
        split: Split,
        seed: int,
        reward_model: Any,
        progress: Progress | None = None,
    ) -> None:
        self._log, self._split, self._progress = log, split, progress
        self.part = split.evaluated(log.numbers, log.ids)
        rest = log.sample.rows(self.part)
        gaps = np.isnan(with_products_of_slots(rest).propensity).any()
        self._model = PropensityModel(rest, seed) if gaps else None
        rest = with_estimated_propensities(rest, seed, self._model)
        numbers = log.numbers[self.part]
        self.logged = LoggedEvidence(rest, seed, reward_model, numbers, by_number=True)
        scans = log.scans_from(split.boundary)
        share = 1 - split.share if split.random else 1.0
        self.decisions = round(share * sum(one.decisions for one in scans))
        taken = [
            frozenset().union(*(one.taken[slot] for one in scans))
            for slot in range(len(log.schema.menu.slots))
        ]
        self._facts = LogFacts(
            log.problem.scale.bounds or log.reward_range(split.boundary),
            [
                np.array([choice.name not in known for choice in slot.choices], dtype=bool)
                for slot, known in zip(log.schema.menu.slots, taken, strict=True)
            ],
        )
        self.logged.untaken = self._facts.untaken

    def evaluated(
        self, names: Iterable[str], targets: Targets, setup: Setup
    ) -> tuple[LogSums, Iterable[tuple[str, PolicySums]]]:
        """Return the sums about the log and about each policy, computed by all processes."""
        log, names = self._log, [*names]
        policies = {
            name: PolicyPlan.of(targets(name), self.logged, self.decisions, setup)[0]
            for name in dict.fromkeys([setup.baseline, *names])
        }
        rows, folds = self.logged.log, self.logged.fold
        groups = None if log.clusters is None else ClusterGroups.of(log.clusters)
        group_folds = np.zeros(0, dtype=np.int8)
        if groups is not None and log.ids is not None:
            drawn = uniform_of(np.arange(groups.total), FOLD_SEED) * FOLDS
            group_folds = drawn.astype(np.int8)
            if groups.numbers is not None:
                group_folds[groups.of_ids(log.ids[self.part])] = folds
        evaluated = len(log) - self._split.boundary
        block_rows = -(-evaluated // BLOCKS) if setup.interval in NEED_BLOCKS else 0
        numbers = self.logged.numbers
        # The sample is not sent to the processes: they need only what was fitted to it.
        none = self.logged.of_batch(rows.rows(np.arange(1)), numbers[:1], folds[:1], self._facts)
        plan = FilePlan(
            replace(log, sample=rows.rows(np.arange(0)), scans=[], numbers=numbers[:0], ids=None),
            self._split,
            none,
            self._model,
            numbers,
            folds,
            groups,
            group_folds,
            self._facts,
            policies,
            setup,
            block_rows,
            -(-evaluated // max(block_rows, 1)),
        )
        sums, found = _summed(log, plan, self._progress)
        return sums, ((name, found[name]) for name in names)


def _summed(log: PartedLog, plan: FilePlan, progress: Progress | None) -> BatchSums:
    """Return the sums over all evaluated rows, computed by all processes."""
    tasks = [
        (unit, first, plan)
        for unit, first, scan in zip(log.units, log.first_rows, log.scans, strict=True)
        if first + scan.rows > plan.split.boundary
    ]
    total: BatchSums | None = None
    jobs = log.jobs if len(log) >= FEWEST_PARALLEL else 1
    if jobs > 1 and log.scheduler is None:
        _check_sendable(plan.policies)
    with executed(jobs, log.scheduler) as run:
        for done, found in enumerate(run(evaluate_unit, tasks)):
            if progress is not None:
                progress("part", done, len(tasks))
            if found is not None:
                total = found if total is None else added(total, found)
    if total is None:
        raise InputError("no row of the log is evaluated: give a smaller share to learn from")
    return total


def _check_sendable(policies: Mapping[str, PolicyPlan]) -> None:
    """Refuse a policy that cannot be sent to other processes, such as a lambda."""
    for name, plan in policies.items():
        try:
            pickle.dumps(plan.target)
        except Exception as error:
            raise InputError(
                f"the policy {name!r} cannot be sent to other processes ({one_line(error)}); a "
                "function or class of a module is allowed: define it in a file, or give jobs=1"
            ) from error


class FileEvaluation:
    """A log of files, split into rows to learn from and rows to evaluate on.

    Policies learn from rows of the sample.
    """

    def __init__(
        self,
        log: PartedLog,
        candidates: Mapping[str, Any],
        options: ComparisonOptions,
        progress: Progress | None = None,
    ) -> None:
        self.log, self._candidates, self._options = log, candidates, options
        learning = any(learns(one) for one in candidates.values())
        split = log.split
        if split is None or learning:
            split = Split.of(len(log), learning, options.share, options.by, options.seed)
        self.main = FileBatches(log, split, options.seed, options.reward_model, progress)
        part = self.main.part
        if not part.any() or (learning and part.all()):
            raise InputError(
                f"the share to learn from is {split.share}, so no row of the sample is "
                f"{'learned from' if part.any() else 'evaluated'}; a share of which both have rows "
                "is allowed: give 0.5"
            )
        rest = self.main.logged.log
        for label, one in options.estimators.items():
            if not one.adds_up:
                raise InputError(
                    f"the estimator {label} needs the log in memory; the others are allowed for a "
                    "log that is read in parts: leave the estimator out",
                    code="needs-memory",
                )
        usual = applicable_estimators(rest).items()
        self.estimators = options.estimators or {name: one for name, one in usual if one.adds_up}
        self._learned = int(np.count_nonzero(~part))
        self.notes = [*log.notes, *self.main.logged.model_choice.notes()]
        if log.clusters is not None:
            grouped = f", in {MOST_CLUSTERS} random groups" * (len(log.clusters) > MOST_CLUSTERS)
            self.notes.append(f"intervals are by cluster: {len(log.clusters)} clusters{grouped}")
        if len(log.numbers) < len(log):
            self.notes.append(
                f"policies, reward models and thresholds were fitted to parts of a random sample "
                f"of {len(log.numbers)} rows: policies learned from {self._learned} of them"
            )
        self._targets: dict[str, Any] = {LOGGING_POLICY: None}

    def target(self, name: str) -> Any:
        """Return a policy after it has learned; notes say what it learned from."""
        if name not in self._targets:
            candidate, first = self._candidates[name], ~self.main.part
            target = learned_target(candidate, self.log.sample, first, self._options.seed)
            self._targets[name] = target
            self.notes += policy_notes(name, candidate, target, self._learned)
        return self._targets[name]

    def own_rows(self, name: str) -> tuple[FileBatches, bool]:
        """Return the rows on which to evaluate a policy: the same for all."""
        candidate = self._candidates[name]
        learned = candidate.base if isinstance(candidate, TargetPolicy) else candidate
        if learned is not None and not learns(candidate) and not self._options.apart:
            self.notes.append(
                f"{name} was learned before: whether it learned from some of these rows is not "
                "known"
            )
        return self.main, False

    def learned_rows(self, decisions: int) -> int:
        """Return how many rows are not evaluated, and note how many are."""
        rows = f"{decisions} of {len(self.log)} rows"
        self.notes.append(f"evaluated on {rows}, which were read in parts")
        return len(self.log) - decisions
