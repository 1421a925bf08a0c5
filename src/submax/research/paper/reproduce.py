"""The experiments of the paper: sweeps with verdicts on its claims, the illustration, and logs."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from submax.research.paper.claims import (
    environment_checks,
    illustration_statements,
    statements_of,
    write_statements,
)
from submax.research.paper.illustration import illustrate
from submax.simulation.compare import Finals
from submax.simulation.experiment import Cell, Specification
from submax.simulation.results import claim_directory, close_directory, write_csv, write_results
from submax.simulation.runner import run_cells


def run_sweep(
    specification: Specification,
    chosen: Sequence[Cell],
    directory: Path,
    executor: Executor,
    finished: Callable[[str, Any], None],
) -> None:
    """Run the chosen cells; write their results, and the verdicts on claims that these allow."""

    def write(directory: Path, done: Sequence[tuple[Cell, Any]]) -> None:
        write_results(directory, done)
        section, finals = specification.statements, Finals.read(directory)
        write_statements(directory, statements_of(section, finals))
        checks = environment_checks(section, finals, specification.observations)
        if rows := [one._asdict() for one in checks]:
            write_csv(directory / "calibration.csv", rows)

    run_cells(specification, chosen, directory, executor, finished, write=write)


def run_offline(*arguments: Any) -> None:
    """Run the chosen cells on logs, then write result files for all finished cells."""
    # Imported only here: other experiments need nothing of the evaluation of logs.
    from submax.research.paper.offline import estimate_cell, write_offline

    run: Any = run_cells
    run(*arguments, run=estimate_cell, write=write_offline)


def run_illustration(
    specification: Specification, chosen: object, directory: Path, *others: object
) -> None:
    """Compute the illustration, which has no cells, and write its result files."""
    begin = time.perf_counter()
    claim_directory(directory, specification)
    illustrate(specification, directory)
    write_statements(directory, illustration_statements(directory))
    close_directory(directory, specification, time.perf_counter() - begin)


RUNS: dict[str, Callable[..., None]] = {
    "illustration": run_illustration,
    "offline": run_offline,
    "sweep": run_sweep,
}
"""What runs the chosen cells of each kind of experiment, and writes its files."""
