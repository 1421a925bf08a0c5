"""The experiments of the paper: sweeps with verdicts on its claims, the illustration, and logs."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path

from submax.research.paper.claims import (
    environment_checks,
    illustration_statements,
    statements_of,
    write_environment_checks,
)
from submax.research.paper.illustration import illustrate
from submax.research.paper.statements import write_statements
from submax.simulation.compare import Finals
from submax.simulation.experiment import Cell, Specification, cells
from submax.simulation.results import ROWS, CellStore, claim_directory, close_directory
from submax.simulation.runner import CELLS, sweep


def write_claims(specification: Specification, directory: Path) -> None:
    """Write the verdicts on the paper's claims that the finished cells of a sweep allow."""
    section, finals = specification.statements, Finals.read(directory)
    write_statements(directory, statements_of(section, finals))
    write_environment_checks(
        directory, list(environment_checks(section, finals, specification.observations))
    )


def run_offline(
    specification: Specification,
    chosen: Sequence[Cell],
    directory: Path,
    executor: Executor,
    finished: Callable[[str, object], None],
) -> None:
    """Run the chosen cells on logs, then write result files for all finished cells."""
    # Imported only here: other experiments need nothing of the evaluation of logs.
    from submax.research.paper.offline import estimate_cell, write_offline

    begin = time.perf_counter()
    claim_directory(directory, specification)
    store = CellStore(directory / CELLS, ROWS)
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
