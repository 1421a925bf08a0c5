"""Run an experiment and write its result files."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from submax.experiments.cells import Cell, cells, run_cell
from submax.experiments.directory import claim_directory, close_directory
from submax.experiments.illustration import illustrate
from submax.experiments.paired_comparison import Finals
from submax.experiments.results import FinishedCell, write_results
from submax.experiments.rows_store import RowsStore
from submax.experiments.specification import Specification
from submax.experiments.statements.environment_check import (
    environment_checks,
    write_environment_checks,
)
from submax.experiments.statements.illustration_statements import illustration_statements
from submax.experiments.statements.statement import write_statements
from submax.experiments.statements.statements import statements_of
from submax.simulation.cell_result import CellResult
from submax.simulation.cell_store import CellStore
from submax.simulation.sweep import sweep

CELLS = "cells"
"""The folder of a result directory that has one file for each finished cell."""


def unfinished(specification: Specification, directory: Path, chosen: Sequence[Cell]) -> list[Cell]:
    """The chosen cells that have no result in the directory yet."""
    kind = RowsStore if specification.experiment == "offline" else CellStore
    store = kind(directory / CELLS)
    return [cell for cell in chosen if not store.finished(cell.key)]


def run_sweep(
    specification: Specification,
    chosen: Sequence[Cell],
    directory: Path,
    executor: Executor,
    finished: Callable[[str, CellResult], None],
) -> None:
    """Run the chosen cells, then write result files for all finished cells of the experiment."""
    begin = time.perf_counter()
    claim_directory(directory, specification)
    store = CellStore(directory / CELLS)
    sweep({cell.key: cell for cell in chosen}, run_cell, store, executor, finished)
    write_results(directory, _stored(specification, store))
    section, finals = specification.statements, Finals.read(directory)
    write_statements(directory, statements_of(section, finals))
    write_environment_checks(
        directory, list(environment_checks(section, finals, specification.observations))
    )
    close_directory(directory, specification, seconds=round(time.perf_counter() - begin, 2))


def run_offline(
    specification: Specification,
    chosen: Sequence[Cell],
    directory: Path,
    executor: Executor,
    finished: Callable[[str, object], None],
) -> None:
    """Run the chosen cells on logs, then write result files for all finished cells."""
    # Imported only here: other experiments need nothing of the evaluation of logs.
    from submax.experiments.offline import estimate_cell, write_offline

    begin = time.perf_counter()
    claim_directory(directory, specification)
    store = RowsStore(directory / CELLS)
    sweep({cell.key: cell for cell in chosen}, estimate_cell, store, executor, finished)
    keys = [cell.key for cell in cells(specification) if store.finished(cell.key)]
    write_offline(directory, [row for key in keys for row in store.read(key)])
    close_directory(directory, specification, seconds=round(time.perf_counter() - begin, 2))


def run_illustration(specification: Specification, directory: Path) -> None:
    """Compute the illustration and write its result files."""
    begin = time.perf_counter()
    claim_directory(directory, specification)
    illustrate(specification, directory)
    write_statements(directory, illustration_statements(directory))
    close_directory(directory, specification, seconds=round(time.perf_counter() - begin, 2))


def _stored(specification: Specification, store: CellStore) -> list[FinishedCell]:
    """All finished cells, in the order of the experiment."""
    return [
        FinishedCell(cell, store.read(cell.key))
        for cell in cells(specification)
        if store.finished(cell.key)
    ]
