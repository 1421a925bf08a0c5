"""Export decisions and rewards to Parquet or CSV, delete what was exported, erase a unit."""

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from submax.bandit.declaring import (
    PYTHON,
    DeclaredBandit,
    Who,
    audit_statement,
    read_bandit,
    write_audit,
)
from submax.bandit.reading import advance
from submax.bandit.row_texts import read_contexts, read_key, read_numbers
from submax.bandit.store import Store
from submax.bandit.tables import (
    DAMAGED,
    DECISION_COLUMNS,
    PART,
    WORD,
    Statement,
    decision_content,
    decision_row,
)
from submax.bandit.training_rows import (
    ALL_COLUMNS,
    PENDING,
    REWARDS,
    STATUSES,
    TrainingRows,
    wait_of,
    whole_decisions,
)
from submax.core.arrays import Floats
from submax.core.errors import InputError, StoreError
from submax.core.optional import require_extra
from submax.core.serialization import atomic_write
from submax.core.summary import counted
from submax.schema.actions import ARMS
from submax.schema.context import Category, ContextSchema, Number
from submax.schema.schema import METADATA

END_OF_TIME = 1e18
"""A time after all others, which every database can compare."""
ROWS_PER_GROUP = 10_000
"""Rows that are written as one group of rows, so only some batches are in memory."""


N_REWARD = ALL_COLUMNS.index("r.n")
THESE = "from decision where +bandit = :bandit and +at < :before and +at <= :clock"
COUNTS = f"""select (select count(*) {THESE}), (select count(*) from reward where +bandit = :bandit
and +at <= :clock and +decision <= (select max(n) {THESE}))"""
"""SQL for how many decisions are exported, and their rewards. A damaged index leaves out rows; the
plus keeps SQLite from using one."""
UNDECLARED = "(other)"
"""The category, in the schema of an exported file, of values that were not declared."""


class DecisionTables:
    """Decisions of a bandit as Arrow tables, in the order in which they were made.

    ``status`` is `pending` until the decision matures, then `learned`, or the reason why it was not
    learned from: `held out`, `never activated`, `without reward`, `paused`. ``reward`` is the
    reward that was learned, or the one known so far; if rewards have names or slots,
    ``reward_NAME`` is the part of each, null if it did not come. ``late_rewards`` counts rewards
    that came after the decision had matured. A damaged row raises an error that names it.
    """

    def __init__(self, store: Store, declared: DeclaredBandit, before: float | None = None) -> None:
        require_extra("logs", "an export", "pyarrow")
        self._store, self._declared = store, declared
        self._settings, self._menu = declared.settings, declared.menu
        self._before = END_OF_TIME if before is None else before
        self._clock = store.now(declared.n)
        self._rows = TrainingRows(store, declared.n, self._settings, self._menu)
        rule = self._settings.reward_parts
        self._parts = [] if rule is None else list(rule.names)
        # Categories that were not declared, by field.
        self._unknown: dict[str, set[str | None]] = {}
        self.schema = self._schema()

    def __iter__(self) -> Iterator[Any]:
        sql = (
            f"select {', '.join(ALL_COLUMNS)} from decision d {REWARDS} and r.at <= :clock where "
            "d.bandit = :bandit and d.at < :before and d.at <= :clock order by d.at, d.n"
        )
        values = {"bandit": self._declared.n, "before": self._before, "clock": self._clock}
        expected: list[tuple[int, int]] = []

        def batches() -> Iterator[list[Any]]:
            for rows in self._store.stream(sql, COUNTS, **values):
                if len(rows[0]) > 2:
                    yield rows
                else:
                    expected.extend(rows)

        decisions = rewards = last = 0
        for rows in whole_decisions(batches()):
            numbers = [row[0] for row in rows]
            if last >= numbers[0] or numbers != sorted(numbers):
                raise _damaged("the index decision_time is not in order")
            last, decisions = numbers[-1], decisions + len(set(numbers))
            rewards += sum(row[N_REWARD] is not None for row in rows)
            yield self._table(rows)
        if expected != [(decisions, rewards)]:
            raise _damaged(
                f"{decisions} decisions with {rewards} rewards were found, and the tables have "
                f"{expected[0][0]} with {expected[0][1]}"
            )

    def _table(self, rows: list[tuple[Any, ...]]) -> Any:
        import pyarrow as pa

        found = self._rows.read(ALL_COLUMNS, rows)
        # Of a decision that has not matured, the reward so far.
        pending = found.matures > self._clock
        status = np.where(pending, PENDING, found.status)
        reward = np.where(pending & ~found.rewarded, np.nan, found.reward)
        column = found.table
        columns = [
            column["id"],
            arrow_times(column["at"]),
            *self._actions(column["action"]),
            column["propensity"],
            column["version"],
            *self._context_columns(column["context"]),
            *self._choices(column["eligible"], column["probabilities"]),
            [one is not None for one in column["activated"]],
            [one == "holdout" for one in column["assignment"]],
            column["assignment"],
            column["unit"],
            pa.array(STATUSES, pa.string()).take(pa.array(status)),
            _with_nulls(reward),
            found.late,
            *map(_with_nulls, found.parts.T),
        ]
        return pa.table(dict(zip(self.schema.names, columns, strict=True)), schema=self.schema)

    def _actions(self, texts: list[str]) -> list[Any]:
        if self._menu.plain:
            return [texts]
        decoded = msgspec.json.decode(f"[{','.join(texts)}]")
        named = [[row[slot.name] for row in decoded] for slot in self._menu.slots]
        numbers = [[row[one.name] for row in decoded] for one in self._menu.ranges]
        return [*named, *numbers]

    def _context_columns(self, texts: list[str | None]) -> list[Any]:
        context = self._settings.context
        if not context.names:
            return []
        numbers = read_numbers(context, texts)
        if numbers is not None:
            return list(numbers.T.copy())
        width, rows = len(context.names), read_contexts(texts)
        if any(len(row) < width for row in rows):
            rows = [row + [None] * (width - len(row)) for row in rows]
        columns = list(zip(*rows, strict=True))
        for name, field, column in zip(context.names, context.fields, columns, strict=True):
            if isinstance(field, Category):
                unknown = self._unknown.setdefault(name, set())
                unknown |= set(column).difference(field.values, unknown)
        return [
            _with_nulls(np.array(column, np.float64)) if isinstance(field, Number) else column
            for column, field in zip(columns, context.fields, strict=True)
        ]

    def _choices(
        self, eligible: list[str | None], probabilities: list[str | None]
    ) -> tuple[Any, Any]:
        """The eligible choices of each slot, and the probabilities of their joint actions."""
        import pyarrow as pa

        codes: dict[tuple[str | None, str | None], int] = {}
        code = pa.array(
            [
                codes.setdefault(pair, len(codes))
                for pair in zip(eligible, probabilities, strict=True)
            ]
        )
        decoded = msgspec.json.decode(f"[{','.join(text or 'null' for _, text in codes)}]")
        # Probabilities by name say which arms were eligible.
        names = [
            [list(listed)] if isinstance(listed, dict) else self._names(text)
            for (text, _), listed in zip(codes, decoded, strict=True)
        ]
        lists = [list(one.values()) if isinstance(one, dict) else one for one in decoded]
        kinds = pa.list_(pa.list_(pa.string())), pa.list_(pa.float64())
        return pa.array(names, kinds[0]).take(code), pa.array(lists, kinds[1]).take(code)

    def _names(self, text: str | None) -> list[list[str]]:
        if text is not None:
            names: list[list[str]] = msgspec.json.decode(text)
            return names
        return [
            [slot.choices[index].name for index in indices]
            for slot, indices in zip(self._menu.slots, self._menu.active, strict=True)
        ]

    @property
    def metadata(self) -> dict[str, bytes]:
        """What a reader of the file must know; complete after the last table.

        If categories occurred that were not declared, or fields are missing in old rows, the schema
        has one more category for them.
        """
        schema, fields = self._settings.schema(self._menu), {}
        for name, field in schema.context.table.items():
            if isinstance(field, Category) and self._unknown.get(name):
                field = Category((*field.values, UNDECLARED), UNDECLARED)
            elif isinstance(field, Category) and not field.default:
                field = msgspec.structs.replace(field, default=None)
            fields[name] = field
        context = ContextSchema(tuple(fields), tuple(fields.values()))
        return {METADATA: msgspec.json.encode(msgspec.structs.replace(schema, context=context))}

    def _schema(self) -> Any:
        import pyarrow as pa

        menu, context = self._menu, self._settings.context
        actions = [
            ("action" if slot.name == ARMS else f"action_{slot.name}", pa.string())
            for slot in menu.slots
        ]
        actions += [(f"action_{one.name}", pa.float64()) for one in menu.ranges]
        fields = [
            (f"context_{name}", pa.float64() if isinstance(field, Number) else pa.string())
            for name, field in zip(context.names, context.fields, strict=True)
        ]
        text, number, truth, numbers = pa.string(), pa.float64(), pa.bool_(), pa.list_(pa.float64())
        parts = [(f"reward_{name}", number) for name in self._parts]
        return pa.schema(
            [
                ("id", text), ("at", pa.timestamp("us", tz="UTC")), *actions,
                ("propensity", number), ("version", pa.int64()), *fields,
                ("eligible", pa.list_(pa.list_(text))), ("probabilities", numbers),
                ("activated", truth), ("holdout", truth), ("group", text), ("unit", text),
                ("status", text), ("reward", number), ("late_rewards", pa.int64()), *parts,
            ]
        )  # fmt: skip


def _damaged(what: str) -> InputError:
    return InputError(f"{what}: run submax doctor, or restore a backup", code=DAMAGED)


def _with_nulls(column: Floats) -> Any:
    import pyarrow as pa

    return pa.array(column, pa.float64(), mask=np.isnan(column))


def arrow_times(seconds: Sequence[float]) -> Any:
    """Unix seconds as timestamps, rounded as ``datetime.fromtimestamp`` does."""
    import pyarrow as pa

    fraction, whole = np.modf(np.asarray(seconds, np.float64))
    microseconds = whole.astype(np.int64) * 1_000_000 + np.rint(fraction * 1e6).astype(np.int64)
    return pa.array(microseconds).cast(pa.timestamp("us", tz="UTC"))


class RewardTables:
    """Every reward of a bandit as it came, as Arrow tables; those in quarantine are not known."""

    def __init__(self, store: Store, declared: DeclaredBandit) -> None:
        require_extra("logs", "an export", "pyarrow")
        import pyarrow as pa

        self._store, self._declared, text = store, declared, pa.string()
        self.schema = pa.schema(
            {
                "id": text, "key": text, "at": pa.timestamp("us", tz="UTC"), "value": pa.float64(),
                "late": pa.bool_(), "known": pa.bool_(), "name": text, "source": text,
            }
        )  # fmt: skip

    def __iter__(self) -> Iterator[Any]:
        known = (
            "select d.id, r.key, r.at, r.value, r.late, r.parts, r.source, 1 from reward r "
            "join decision d on d.n = r.decision where r.bandit = :bandit order by r.at, r.n"
        )
        early = (
            "select id, key, at, value, 0, parts, source, 0 from early_reward "
            "where bandit = :bandit order by at, n"
        )
        for sql in (known, early):
            for rows in self._store.stream(sql, bandit=self._declared.n):
                yield self._table(rows)

    def _table(self, rows: list[tuple[Any, ...]]) -> Any:
        """A reward with several parts is a row for each."""
        import pyarrow as pa

        flat = [
            (identifier, read_key(key), at, number, bool(late), bool(known), name, source)
            for identifier, key, at, value, late, parts, source, known in rows
            for name, number in (msgspec.json.decode(parts) if parts else {None: value}).items()
        ]
        columns = dict(zip(self.schema.names, zip(*flat, strict=True), strict=True))
        columns["at"] = arrow_times(columns["at"])
        return pa.table(columns, schema=self.schema)


def export(
    store: Store,
    name: str,
    path: Path | str,
    *,
    before: float | None = None,
    delete: bool = False,
    who: Who = PYTHON,
) -> int:
    """Write the decisions of a bandit to a file, CSV if its name ends so and else Parquet.

    Only decisions older than the Unix time ``before`` are written, if it is given. With ``delete``
    they are deleted with their rewards after the file was read again and compared with the store;
    sums for pages and lift stay. Return the number of decisions.
    """
    declared, path = read_bandit(store, name), Path(path)
    tables = DecisionTables(store, declared, before)
    if delete:
        _check_may_delete(store, declared, before, path)
    count = write(path, tables.schema, tables)
    if delete:
        _verify(path, tables)
        # What was not counted yet would be missing on pages.
        advance(store, declared)
        deleted = store.delete_decisions(declared.n, "at < :before", before=before)
        when = "" if before is None else f" before {datetime.fromtimestamp(before, UTC):%Y-%m-%d}"
        write_audit(
            store,
            name,
            who,
            "export and delete",
            f"{counted(deleted, 'decision')}{when} to {path.name}",
        )
    return count


def export_rewards(store: Store, name: str, path: Path | str) -> int:
    """Write every reward of a bandit as it came to a file; return their number."""
    tables = RewardTables(store, read_bandit(store, name))
    return write(Path(path), tables.schema, tables)


def _check_may_delete(
    store: Store, declared: DeclaredBandit, before: float | None, path: Path
) -> None:
    """Refuse to delete decisions that can still be learned from, or without a file to compare."""
    if path.suffix.lower() == ".csv":
        raise InputError(
            "delete needs a Parquet file, which keeps all digits and types: give a "
            "name that ends in .parquet",
            parameter="delete",
        )
    if before is None:
        raise InputError(
            "delete needs before, the time up to which decisions are deleted",
            parameter="before",
        )
    if declared.settings.status == "archived":
        return
    wait = wait_of(declared.settings)
    ((cursor,),) = store.select(
        "select coalesce(max(cursor), 0) from version where bandit = :bandit", bandit=declared.n
    )
    newest = cursor - (0.0 if wait == math.inf else wait)
    if before > newest:
        text = f"{datetime.fromtimestamp(max(newest, 0.0), UTC):%Y-%m-%d %H:%M:%S} UTC"
        raise InputError(
            f"decisions up to {text} have been learned from, but not later ones: give "
            "an earlier time, refit first, or archive the bandit",
            parameter="before",
        )


def _verify(path: Path, tables: "DecisionTables") -> None:
    """Read a file again and compare it with the store; an error if they differ."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        groups = 0
        for groups, expected in enumerate(_groups(tables.schema, tables), 1):
            if groups > file.num_row_groups or not file.read_row_group(groups - 1).equals(expected):
                groups = 0
                break
        if groups != file.num_row_groups:
            raise StoreError(
                f"{path} does not match the store, so nothing was deleted: check the disk, "
                "and export again"
            )


def check_ending(path: Path) -> None:
    """Refuse the name of a file of another kind than can be written."""
    if path.suffix.lower() in (".xlsx", ".xls", ".ods", ".json", ".jsonl", ".gz", ".zip"):
        raise InputError(
            f"{str(path)!r} cannot be written as {path.suffix}: give a name that ends in .parquet "
            "or .csv"
        )


def write(path: Path, schema: Any, tables: Iterable[Any]) -> int:
    """Write tables to a file that only its owner can read; return the number of rows."""
    check_ending(path)
    writer = _write_csv if path.suffix.lower() == ".csv" else _write_parquet
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} to write to: make it first")
    with atomic_write(path, private=True) as file:
        return writer(file, schema, tables)


def _groups(schema: Any, tables: Iterable[Any]) -> Iterator[Any]:
    """The same rows in tables of one size, so the same rows give the same bytes of a file."""
    import pyarrow as pa

    rest, empty = schema.empty_table(), True
    for table in tables:
        rest = pa.concat_tables([rest, table])
        while rest.num_rows >= ROWS_PER_GROUP:
            empty = False
            yield rest.slice(0, ROWS_PER_GROUP).combine_chunks()
            rest = rest.slice(ROWS_PER_GROUP)
    if empty or rest.num_rows:
        yield rest.combine_chunks()


def _write_parquet(file: BinaryIO, schema: Any, tables: Iterable[Any]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    count = 0
    # Numbers and ids hardly ever repeat, so looking for repetitions takes time for nothing.
    texts = [
        one.name
        for one in schema
        if one.name not in ("id", "at", "probabilities") and not pa.types.is_floating(one.type)
    ]
    # Without the schema of Arrow, readers find the metadata that is added at the end.
    with pq.ParquetWriter(file, schema, use_dictionary=texts, store_schema=False) as writer:
        for table in _groups(schema, tables):
            count += table.num_rows
            writer.write_table(table)
        if isinstance(tables, DecisionTables):
            writer.add_key_value_metadata(tables.metadata)
    return count


def _write_csv(file: BinaryIO, schema: Any, tables: Iterable[Any]) -> int:
    """Write comma-separated values; lists are JSON."""
    import pyarrow as pa
    from pyarrow import csv

    count = 0
    flat = pa.schema(
        [pa.field(one.name, pa.string()) if pa.types.is_list(one.type) else one for one in schema]
    )
    with csv.CSVWriter(file, flat) as writer:
        for table in tables:
            count += table.num_rows
            columns = [
                pa.array([_json(value) for value in column.to_pylist()], pa.string())
                if pa.types.is_list(column.type)
                else column
                for column in table.columns
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=flat))
    return count


def _json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def erase(store: Store, name: str, unit: str, *, anonymous: bool = False, who: Who = PYTHON) -> int:
    """Delete all decisions and rewards of a unit, or make them anonymous; return how many.

    The audit records that it was done, but not for whom.
    """
    declared = read_bandit(store, name)
    values = {"bandit": declared.n, "unit": unit}
    rows = store.select(
        f"select {DECISION_COLUMNS} from decision where bandit = :bandit and unit = :unit",
        **values,
    )
    unpinned = Statement("delete from unit where bandit = :bandit and unit = :unit", values)
    # Other processes forget what they remember of units when the revision changes.
    changed = Statement("update bandit set revision = revision + 1 where n = :bandit", values)
    verb = "make a unit anonymous" if anonymous else "erase a unit"
    audit = audit_statement(store, name, who, verb, counted(len(rows), "decision"))
    if not anonymous:
        store.delete_decisions(declared.n, "unit = :unit", unit=unit)
    statements = map(_without_unit, rows) if anonymous else ()
    store.execute([*statements, unpinned, changed, audit])
    return len(rows)


def _without_unit(row: tuple[Any, ...]) -> Statement:
    """The statement that removes the unit of a decision, with the checksum that it has then."""
    decision = decision_row(row)
    content = decision_content(row[1], decision)
    decision.unit = None
    # A checksum is that of the content plus terms that stay as they are.
    change = decision_content(row[1], decision) - content
    checksum = (decision.checksum + PART + change) % WORD - PART
    return Statement(
        "update decision set unit = null, checksum = :checksum where n = :n",
        {"n": decision.n, "checksum": checksum},
    )
