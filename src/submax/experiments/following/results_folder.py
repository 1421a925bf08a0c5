"""A result folder, read while it may be empty, under way, finished or damaged."""

import zipfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.experiments.comparing.paired_comparison import CellLabels, Finals
from submax.experiments.following.cell_progress import CELLS, CellProgress, cell_progress
from submax.experiments.following.planned_cell import PlannedCell
from submax.experiments.following.run_record import read_records
from submax.experiments.specification import Specification
from submax.experiments.statements.illustration_statements import illustration_statements
from submax.experiments.statements.statement import Statement
from submax.experiments.statements.statements import statements_of
from submax.experiments.storing.directory import MANIFEST, read_manifest
from submax.experiments.storing.results import FINALS, RESULTS, SUMMARY
from submax.schema.known_type import known_type
from submax.simulation.cell_result import CellResult
from submax.simulation.cell_store import CellStore

UNREADABLE = (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile, pa.ArrowException)
"""What reading a damaged file raises."""


class PolicyCurve(NamedTuple):
    """The mean of a measure after each of some ``steps``, and its standard error."""

    policy: str
    steps: Integers
    mean: Floats
    error: Floats


class ResultsFolder:
    """Everything that a result folder says at one moment.

    ``manifest`` is empty if there is none yet. ``going`` says whether a process writes the folder
    now, and ``ended`` how the last run ended if it did not succeed. A file that cannot be read is
    named in ``problems``, and all others are used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self.manifest: dict[str, Any] = self._read_manifest()
        self.specification = self._read_specification()
        records = read_records(path)
        self.going = any(going for _, going in records)
        self.ended = "" if self.going or not records else records[0][0].ended or "silent"
        self.started = min((record.started for record, going in records if going), default=None)
        chosen = [cell for record, going in records if going or not self.going
                  for cell in record.cells]  # fmt: skip
        self.cells: list[CellProgress] = cell_progress(path, _distinct(chosen))

    @property
    def finished(self) -> bool:
        """Whether the last run wrote all its results."""
        return bool(self.manifest.get("finished")) and not self.going and not self.ended

    def configurations(self) -> list[dict[str, Any]]:
        """The labels of all configurations, in order, also of those with no finished cell yet."""
        planned = [tuple(one.cell.labels.items()) for one in self.cells]
        stored = [] if planned else [labels for labels, _ in self._curve_rows()]
        return [dict(one) for one in dict.fromkeys([*planned, *stored])]

    def policies(self) -> list[str]:
        """The names of all policies, in order, also of those with no finished cell yet."""
        planned = [one.cell.policy for one in self.cells]
        return list(dict.fromkeys(planned or [policy for _, policy in self._curve_rows()]))

    def stored_cells(self) -> int:
        """The number of cells whose results are written, if no run is recorded."""
        if self._kind == "sweep":
            with suppress(OSError):
                # One row for each cell, below the names of the columns.
                return max((self.path / SUMMARY).read_bytes().count(b"\n") - 1, 0)
        files = (self.path / CELLS).glob("*")
        return sum(one.suffix in (".npz", ".json") for one in files)

    def curves(self, labels: dict[str, Any], measure: str) -> list[PolicyCurve]:
        """The curves of all finished policies in one configuration."""
        if not self.cells:
            rows = self._curve_rows()
            return [
                PolicyCurve(policy, *(table[name].to_numpy() for name in _columns(measure)))
                for (held, policy), table in rows.items()
                if dict(held) == labels
            ]
        found = []
        for one in self.cells:
            if one.cell.labels == labels and (result := self._result(one)) is not None:
                curve = getattr(result, measure)
                found.append(PolicyCurve(one.cell.policy, result.steps, curve.mean, curve.error))
        return found

    def finals(self, labels: dict[str, Any] | None = None) -> Finals | None:
        """The final values of all replicas of finished cells; None if there are none.

        With ``labels`` only those of one configuration are needed, and others may be left out.
        """
        if not self.cells:
            return self._stored_finals()
        columns: tuple[dict[CellLabels, Floats], ...] = ({}, {}, {})
        for one in self.cells:
            wanted = labels is None or one.cell.labels == labels
            if wanted and (result := self._result(one)) is not None:
                key = tuple(one.cell.labels.items()), one.cell.policy
                values = (result.final_regret, result.final_reward, result.late_slope)
                for column, value in zip(columns, values, strict=True):
                    column[key] = value
        return Finals(*columns) if columns[0] else None

    def statements(self) -> list[Statement]:
        """The statements of the experiment, tested on the cells that are finished."""
        if self._kind == "illustration" and self.finished:
            try:
                return illustration_statements(self.path)
            except UNREADABLE as error:
                self._add_problem(SUMMARY, error)
                return []
        finals = self.finals()
        if self.specification is None or finals is None:
            return []
        return statements_of(self.specification.statements, finals)

    @property
    def _kind(self) -> str:
        """The kind of experiment; empty if it is not known, and then taken for a sweep."""
        return "" if self.specification is None else self.specification.experiment

    def _result(self, one: CellProgress) -> CellResult | None:
        # Cells on logs have tables instead of curves.
        if one.status != "done" or self._kind != "sweep":
            return None
        store = CellStore(self.path / CELLS)
        try:
            return CellResult.joined([store.read(key) for key in one.cell.keys])
        except UNREADABLE as error:
            self._add_problem(f"{CELLS}/{one.cell.keys[0]}.npz", error)
            return None

    def _read_manifest(self) -> dict[str, Any]:
        if not (self.path / MANIFEST).exists():
            return {}
        try:
            return read_manifest(self.path)
        except InputError as error:
            self.problems.append(str(error))
            return {}

    def _read_specification(self) -> Specification | None:
        if not self.manifest:
            return None
        try:
            return msgspec.convert(self.manifest["specification"], known_type(Specification))
        except (msgspec.ValidationError, InputError) as error:
            self._add_problem(MANIFEST, error)
            return None

    def _curve_rows(self) -> dict[CellLabels, pa.Table]:
        """The curves of a finished sweep, by configuration and policy."""
        path = self.path / RESULTS
        if not path.exists() or self._kind not in ("sweep", ""):
            return {}
        try:
            return _read_curves(str(path), path.stat().st_mtime_ns)
        except UNREADABLE as error:
            self._add_problem(RESULTS, error)
            return {}

    def _stored_finals(self) -> Finals | None:
        if not (self.path / FINALS).exists() or self._kind not in ("sweep", ""):
            return None
        try:
            return Finals.read(self.path)
        except UNREADABLE as error:
            self._add_problem(FINALS, error)
            return None

    def _add_problem(self, file: str, error: Exception) -> None:
        sentence = (
            f"{file} cannot be read ({error}): give the command of the run again, which writes the "
            "file again from the finished cells"
        )
        if sentence not in self.problems:
            self.problems.append(sentence)


def _distinct(cells: list[PlannedCell]) -> list[PlannedCell]:
    """Every cell once, also if several runs were asked for it."""
    return list({tuple(cell.keys): cell for cell in cells}.values())


def _columns(measure: str) -> list[str]:
    return ["step", f"{measure}_mean", f"{measure}_error"]


@lru_cache(4)
def _read_curves(path: str, written: int) -> dict[CellLabels, pa.Table]:
    """The rows of each cell of a file, which is read again if it was ``written`` again."""
    table = pq.ParquetFile(path).read()
    missing = {*_columns("regret"), *_columns("reward"), "policy"} - set(table.column_names)
    if missing:
        raise KeyError(f"it has no column {', '.join(sorted(missing))}")
    return _by_cell(table)


def _by_cell(table: pa.Table) -> dict[CellLabels, pa.Table]:
    """The rows of each cell, which follow each other in the table."""
    names = table.column_names[: table.column_names.index("policy") + 1]
    rows = list(zip(*(table[name].to_pylist() for name in names), strict=True))
    begins = [place for place, row in enumerate(rows) if not place or row != rows[place - 1]]
    found = {}
    for begin, end in zip(begins, [*begins[1:], len(rows)], strict=True):
        *values, policy = rows[begin]
        labels = tuple(zip(names, values, strict=False))
        found[labels, policy] = table.slice(begin, end - begin)
    return found
