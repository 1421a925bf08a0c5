"""An experiment as a Python call, with any executor, also in parts on several machines."""

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from submax.core.checks import whole_number
from submax.core.errors import InputError
from submax.experiments.running.cells import cells, rehearse
from submax.experiments.running.run import run_sweep
from submax.experiments.specification import Specification, load_file, load_named
from submax.experiments.storing.directory import check_directory


def run_study(
    experiment: Specification | Path | str,
    out: Path | str = "results",
    *,
    executor: Executor | None = None,
    replicas: int | None = None,
    seed: int | None = None,
    part: tuple[int, int] = (0, 1),
    finished: Callable[[str, Any], None] | None = None,
) -> Path:
    """Run a sweep and return the folder with its results, ``out`` / the name of the experiment.

    ``experiment`` is a TOML file, the name of an experiment that comes with submax, or a
    `Specification`. ``executor`` is any executor of `concurrent.futures`, whose workers have submax
    installed; without one, cells are run one after the other in this process. Cells that are
    finished are not run again. ``finished`` is called with the key and the result of each cell.

    ``part`` = (i, n) runs every n-th cell from the i-th on, so that n jobs share the work in one
    folder. Each job writes the result files from all cells that are finished when it ends; a
    further call without ``part`` writes them from all cells.
    """
    specification = _specification(experiment).changed(replicas=replicas, seed=seed)
    if specification.experiment != "sweep":
        raise InputError(
            f"{specification.name} is not a sweep: run it by the command submax reproduce "
            f"{specification.name}"
        )
    first, step = part
    whole_number("the number of parts", step, at_least=1)
    whole_number("part", first, at_least=0, at_most=step - 1)
    chosen = cells(specification)[first::step]
    directory = Path(out) / specification.name
    check_directory(directory, specification)
    rehearse(chosen)
    # One thread runs the cells here, because a sweep waits for the results of an executor.
    workers: AbstractContextManager[Executor] = (
        ThreadPoolExecutor(1) if executor is None else nullcontext(executor)
    )
    with workers as running:
        run_sweep(specification, chosen, directory, running, finished or _ignore)
    return directory


def _specification(experiment: Specification | Path | str) -> Specification:
    if isinstance(experiment, Specification):
        return experiment
    if isinstance(experiment, Path) or str(experiment).endswith(".toml"):
        return load_file(Path(experiment))
    return load_named(experiment)


def _ignore(key: str, result: Any) -> None:
    """Do nothing when a cell is finished."""
