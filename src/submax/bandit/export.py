"""Export decisions to Parquet or CSV, delete what was exported, erase a unit."""

import math
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from submax.bandit.declaring import PYTHON, DeclaredBandit, Who, audit_statement, read_bandit
from submax.bandit.reading import DELETED, SUMS, advance, summary_statements
from submax.bandit.row_texts import choice_names, read_choices, read_contexts
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
    matured_sql,
)
from submax.core.errors import ConflictError, InputError, StoreError
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
EXPORTED = (
    f"select {', '.join(ALL_COLUMNS)} from decision d {REWARDS} and r.at <= :clock where "
    "d.bandit = :bandit and d.at < :before and d.at <= :clock order by d.at, d.n"
)
DECISIONS = "select count(*), min(d.at) from decision d where d.bandit = :bandit"
UNDECLARED = "(other)"
"""The category, in the schema of an exported file, of values that were not declared."""
OTHER_ENDINGS = (".xlsx", ".xls", ".ods", ".json", ".jsonl", ".gz", ".zip")
"""Names of files of other kinds than are written."""


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
        self._store, self._settings, self._menu = store, declared.settings, declared.menu
        self._clock = store.now(declared.n)
        self._values = {
            "bandit": declared.n,
            "before": END_OF_TIME if before is None else before,
            "clock": self._clock,
        }
        self._rows = TrainingRows(store, declared.n, self._settings, self._menu)
        # Categories that were not declared, by field.
        self._unknown: dict[str, set[str | None]] = {}
        self.schema = self._schema()

    def __iter__(self) -> Iterator[Any]:
        """Tables of about ROWS_PER_GROUP rows, the same ones each time."""
        import pyarrow as pa

        rest = self.schema.empty_table()
        for table in self._batches():
            rest = pa.concat_tables([rest, table])
            if rest.num_rows >= ROWS_PER_GROUP:
                yield rest.combine_chunks()
                rest = self.schema.empty_table()
        if rest.num_rows:
            yield rest.combine_chunks()

    def _batches(self) -> Iterator[Any]:
        found = last = 0
        rest: list[Any] = []
        with closing(self._store.stream(COUNTS, EXPORTED, **self._values)) as batches:
            ((decisions, rewards),) = next(batches)
            for batch in chain(batches, [[]]):
                # The rewards of a decision stay together.
                rows = rest + batch
                cut = len(rows)
                while batch and cut and rows[cut - 1][0] == rows[-1][0]:
                    cut -= 1
                rows, rest = rows[:cut], rows[cut:]
                if not rows:
                    continue
                numbers = [row[0] for row in rows]
                if last >= numbers[0] or numbers != sorted(numbers):
                    raise _damaged("the index decision_time is not in order")
                last, found = numbers[-1], found + len(set(numbers))
                rewards -= sum(row[N_REWARD] is not None for row in rows)
                yield self._table(rows)
        if found != decisions or rewards:
            raise _damaged(
                f"the index decision_time has {found} of {decisions} decisions, and lacks "
                f"{rewards} of their rewards"
            )

    def _table(self, rows: list[tuple[Any, ...]]) -> Any:
        import pyarrow as pa

        found = self._rows.read(rows)
        # Of a decision that has not matured, the reward so far.
        pending = found.matures > self._clock
        reward = np.where(pending & ~found.rewarded, np.nan, found.reward)
        column = found.table
        columns = [
            column["id"],
            [datetime.fromtimestamp(one, UTC) for one in column["at"].tolist()],
            *self._actions(column["action"]),
            column["propensity"],
            column["version"],
            *self._contexts(column["context"]),
            *self._choices(column["eligible"], column["probabilities"]),
            [one is not None for one in column["activated"]],
            [one == "holdout" for one in column["assignment"]],
            column["assignment"],
            column["unit"],
            [STATUSES[one] for one in np.where(pending, PENDING, found.status).tolist()],
            pa.array(reward, from_pandas=True),
            found.late,
            *(pa.array(part.copy(), from_pandas=True) for part in found.parts.T),
        ]
        return pa.table(dict(zip(self.schema.names, columns, strict=True)), schema=self.schema)

    def _actions(self, texts: list[str]) -> list[Any]:
        menu = self._menu
        if menu.plain:
            return [texts]
        decoded = msgspec.json.decode(f"[{','.join(texts)}]")
        names = [*(slot.name for slot in menu.slots), *(one.name for one in menu.ranges)]
        return [[row[name] for row in decoded] for name in names]

    def _contexts(self, texts: list[str | None]) -> list[Any]:
        """The column of each field; a field that was added later is missing in older rows."""
        context = self._settings.context
        rows = read_contexts(texts)
        columns = []
        for place, (name, field) in enumerate(zip(context.names, context.fields, strict=True)):
            column = [row[place] if place < len(row) else None for row in rows]
            if isinstance(field, Category):
                unknown = self._unknown.setdefault(name, set())
                unknown |= set(column).difference(field.values)
            columns.append(column)
        return columns

    def _choices(self, *texts: list[str | None]) -> tuple[list[Any], list[Any]]:
        """The eligible choices of each slot, and the probabilities of their joint actions."""
        pairs = [*zip(*texts, strict=True)]
        read = {pair: read_choices(self._menu, *pair) for pair in set(pairs)}
        names = {pair: choice_names(self._menu, eligible) for pair, (eligible, _) in read.items()}
        return [names[pair] for pair in pairs], [read[pair][1] for pair in pairs]

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

        menu, context, rule = self._menu, self._settings.context, self._settings.reward_parts
        text, number, truth, numbers = pa.string(), pa.float64(), pa.bool_(), pa.list_(pa.float64())
        actions = [
            ("action" if slot.name == ARMS else f"action_{slot.name}", text) for slot in menu.slots
        ]
        actions += [(f"action_{one.name}", number) for one in menu.ranges]
        fields = [
            (f"context_{name}", number if isinstance(field, Number) else text)
            for name, field in zip(context.names, context.fields, strict=True)
        ]
        parts = [(f"reward_{name}", number) for name in (rule.names if rule else ())]
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
    sums for pages and lift stay. Only the owner can read the file. Return the number of decisions.
    """
    declared, path = read_bandit(store, name), Path(path)
    ending = path.suffix.lower()
    if ending in OTHER_ENDINGS:
        raise InputError(
            f"{str(path)!r} cannot be written as {ending}: give a name that ends in .parquet "
            "or .csv"
        )
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {str(path.parent)!r} to write to: create it first")
    if delete:
        before = _deletable(store, declared, before, path)
    tables = DecisionTables(store, declared, before)
    with atomic_write(path, private=True) as file:
        count = (_write_csv if ending == ".csv" else _write_parquet)(file, tables)
    if delete and before is not None:
        _verify(path, tables)
        deleted = _delete(store, declared, "at < :before", before=before)
        what = f"{counted(deleted, 'decision')} before {datetime.fromtimestamp(before, UTC):%F}"
        detail = f"{what} to {path.name}"
        store.execute([audit_statement(store, name, who, "export and delete", detail)])
    return count


def _deletable(store: Store, declared: DeclaredBandit, before: float | None, path: Path) -> float:
    """The time up to which decisions are deleted: ``before``, or now if that is earlier.

    Refuse to delete decisions that can still be learned from, or without a file to compare.
    """
    if path.suffix.lower() == ".csv":
        raise InputError(
            "delete needs a Parquet file, which keeps all digits and types: give a "
            "name that ends in .parquet",
            parameter="delete",
        )
    if before is None:
        raise InputError(
            "delete needs before, the time up to which decisions are deleted", parameter="before"
        )
    # No decision gets an earlier time after this.
    before, settings = min(before, store.tick(declared.n)), declared.settings
    cursor = "(select coalesce(max(cursor), 0) from version where bandit = :bandit)"
    limited = settings.longest_wait < math.inf
    learned = matured_sql(settings, cursor) if limited else f"d.at <= {cursor}"
    sql = f"{DECISIONS} and d.at < :before and not ({learned})"
    ((_, first),) = store.select(sql, bandit=declared.n, before=before)
    if first is not None and settings.status != "archived":
        text = f"{datetime.fromtimestamp(first, UTC):%Y-%m-%dT%H:%M:%SZ}"
        raise InputError(
            f"no version has learned yet from the decision of {text}, so nothing was deleted: give "
            "this time or an earlier one as before, wait for the next version (in Python, refit() "
            "fits it), or archive the bandit",
            parameter="before",
        )
    return before


def _delete(store: Store, declared: DeclaredBandit, where: str, **values: Any) -> int:
    """Delete decisions; what they add to counts, rates and lift stays."""
    # If another process is faster, its sums are there.
    with suppress(ConflictError):
        advance(store, declared)
    summed = "(select matured from progress where bandit = :bandit)"
    sql = f"{DECISIONS} and {where} and not ({matured_sql(declared.settings, summed)})"
    ((pending, _),) = store.select(sql, bandit=declared.n, **values)
    deleted = store.delete_decisions(declared.n, where, **values)
    if pending:
        sums = np.array([pending] + [0] * (len(SUMS) - 1))
        store.execute(summary_statements(declared.n, {DELETED: sums}))
    return deleted


def _verify(path: Path, tables: DecisionTables) -> None:
    """Read a file again and compare it with the store; an error if they differ."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        written = map(file.read_row_group, range(file.num_row_groups))
        pairs = zip_longest(written, tables)
        if not all(one is not None and one.equals(other) for one, other in pairs):
            raise StoreError(
                f"{path} does not match the store, so nothing was deleted: check the disk, "
                "and export again"
            )


def _write_parquet(file: BinaryIO, tables: DecisionTables) -> int:
    import pyarrow.parquet as pq

    count, schema = 0, tables.schema
    # Without the schema of Arrow, readers find the metadata that is added at the end.
    with pq.ParquetWriter(file, schema, store_schema=False) as writer:
        for table in tables:
            count += table.num_rows
            writer.write_table(table)
        writer.add_key_value_metadata(tables.metadata)
    return count


def _write_csv(file: BinaryIO, tables: DecisionTables) -> int:
    """Write comma-separated values; lists are JSON."""
    import pyarrow as pa
    from pyarrow import csv

    count, schema = 0, tables.schema
    lists = [place for place, one in enumerate(schema) if pa.types.is_list(one.type)]
    for place in lists:
        schema = schema.set(place, pa.field(schema.names[place], pa.string()))
    with csv.CSVWriter(file, schema) as writer:
        for table in tables:
            count += table.num_rows
            for place in lists:
                texts = [
                    None if value is None else msgspec.json.encode(value).decode()
                    for value in table.column(place).to_pylist()
                ]
                table = table.set_column(place, schema.field(place), pa.array(texts, pa.string()))
            writer.write_table(table)
    return count


def erase(store: Store, name: str, unit: str, *, anonymous: bool = False, who: Who = PYTHON) -> int:
    """Delete all decisions and rewards of a unit, or make them anonymous; return how many.

    The audit records that it was done, but not for whom.
    """
    declared = read_bandit(store, name)
    values = {"bandit": declared.n, "unit": unit}
    rows = store.select(
        f"select {DECISION_COLUMNS} from decision where bandit = :bandit and unit = :unit", **values
    )
    unpinned = Statement("delete from unit where bandit = :bandit and unit = :unit", values)
    # Other processes forget what they remember of units when the revision changes.
    changed = Statement("update bandit set revision = revision + 1 where n = :bandit", values)
    verb = "make a unit anonymous" if anonymous else "erase a unit"
    audit = audit_statement(store, name, who, verb, counted(len(rows), "decision"))
    if not anonymous:
        _delete(store, declared, "unit = :unit", unit=unit)
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
