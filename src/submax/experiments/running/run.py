"""Run an experiment and write its result files."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from submax.experiments.running.cells import Cell, cells, run_cell
from submax.experiments.running.replica_blocks import (
    BLOCKS,
    all_in_blocks,
    merged_result,
    replica_blocks,
)
from submax.experiments.specification import Specification
from submax.experiments.storing.directory import claim_directory, close_directory
from submax.experiments.storing.results import FinishedCell, write_results
from submax.experiments.storing.rows_store import RowsStore
from submax.simulation.cell_result import CellResult
from submax.simulation.cell_store import CellStore
from submax.simulation.sweep import sweep

CELLS = "cells"
"""The folder of a result directory that has one file for each finished cell."""


def unfinished(specification: Specification, directory: Path, chosen: Sequence[Cell]) -> list[Cell]:
    """The chosen cells that have no result in the directory yet.

    If replicas are added, these are the cells of the further replicas.
    """
    if specification.experiment == "offline":
        rows = RowsStore(directory / CELLS)
        return [cell for cell in chosen if not rows.finished(cell.key)]
    store, counts = CellStore(directory / CELLS), replica_blocks(directory, specification)
    return [cell for cell in all_in_blocks(chosen, counts) if not store.finished(cell.key)]


def run_sweep(
    specification: Specification,
    chosen: Sequence[Cell],
    directory: Path,
    executor: Executor,
    finished: Callable[[str, CellResult], None],
    write_more: Callable[[Specification, Path], None] | None = None,
) -> None:
    """Run the chosen cells, then write result files for all finished cells of the experiment.

    If the directory has fewer replicas, only the further ones are run. ``write_more`` writes what
    else follows from the results, such as verdicts on claims.
    """
    begin = time.perf_counter()
    counts = replica_blocks(directory, specification)
    claim_directory(directory, specification, **{BLOCKS: counts})
    store = CellStore(directory / CELLS)
    blocks = all_in_blocks(chosen, counts)
    sweep({cell.key: cell for cell in blocks}, run_cell, store, executor, finished)
    write_results(directory, _stored(specification, counts, store))
    if write_more is not None:
        write_more(specification, directory)
    seconds = round(time.perf_counter() - begin, 2)
    close_directory(directory, specification, seconds=seconds, **{BLOCKS: counts})


def _stored(
    specification: Specification, counts: Sequence[int], store: CellStore
) -> list[FinishedCell]:
    """All finished cells with all their replicas, in the order of the experiment."""
    results = ((cell, merged_result(cell, counts, store)) for cell in cells(specification))
    return [FinishedCell(cell, result) for cell, result in results if result is not None]
