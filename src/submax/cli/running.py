"""Runs experiments, then draws their figures and prints their results."""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from submax.cli.main import INTERRUPTED
from submax.cli.tables import print_illustration, print_offline, print_sweep
from submax.core.checks import whole_number
from submax.core.errors import InputError
from submax.core.optional import missing_extra, require_extra
from submax.research.paper.reproduce import RUNS
from submax.simulation.experiment import Cell, Specification, cells
from submax.simulation.results import check_directory, read_specification
from submax.simulation.runner import (
    available_cores,
    dask_executor,
    dry_run,
    local_executor,
    unfinished,
)

PRINTED = {"illustration": print_illustration, "offline": print_offline, "sweep": print_sweep}
"""What prints the results of each kind of experiment."""


@contextmanager
def progress(
    name: str, todo: Sequence[Cell], console: Console
) -> Iterator[Callable[[str, Any], None]]:
    """Draw a live bar of the decisions in cells; yield a function for each finished cell."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[cells]} of {task.fields[of]} cells"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False, compact=True),
        console=console,
        disable=not todo,
    )
    decisions = {cell.key: cell.decisions for cell in todo}
    with bar:
        task = bar.add_task(name, total=sum(decisions.values()), cells=0, of=len(todo))

        def finished(key: str, result: object) -> None:
            bar.update(task, advance=decisions[key], cells=bar.tasks[task].fields["cells"] + 1)

        yield finished


@dataclass(frozen=True)
class RunOptions:
    """The options of the commands that run experiments."""

    replicas: int | None
    only: tuple[str, ...]
    out: Path
    jobs: int | None
    scheduler: str | None
    seed: int | None
    quick: bool
    all: bool
    device: str | None
    figures: bool
    own_file: bool = False  # the user's own, who is told of policies that ignore a context

    def prepare(self) -> None:
        """Refuse options that exclude each other, and set where networks are trained."""
        if self.jobs is not None:
            whole_number("--jobs", self.jobs, at_least=1)
        for option, value in (("--jobs", self.jobs), ("--device", self.device)):
            if self.scheduler is not None and value is not None:
                raise InputError(
                    f"{option} does not work with --scheduler, because the workers of a cluster "
                    f"choose their own device: leave {option} out"
                )
        if self.device == "cpu":
            os.environ["JAX_PLATFORMS"] = "cpu"
        if self.device == "gpu":
            require_extra("neural", "--device gpu", "jax")
            # Workers share the GPU with this process, which must not reserve its memory.
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
            from submax.models.nn.training import check_gpu

            check_gpu()


def run_experiments(specifications: Sequence[Specification], options: RunOptions) -> None:
    """Check all experiments, then run one after the other, then draw and print the results."""
    options.prepare()
    console = Console()
    plans = _plans(specifications, options, console)
    jobs = available_cores() if options.jobs is None else options.jobs
    with _interruptible(), local_executor(jobs) as local:
        cluster = (
            nullcontext(local) if options.scheduler is None else dask_executor(options.scheduler)
        )
        with cluster as executor:
            for specification, chosen, directory in plans:
                _run(specification, chosen, directory, executor, console)
        undrawable = missing_extra("plots", "drawing", "matplotlib")
        drawn = options.figures and not undrawable
        for specification, _, directory in plans:
            if drawn:
                _draw_figures(directory, specification, local, console)
            _print(directory, specification, console, drawn=drawn)
    if options.figures and undrawable:
        say(console, f"No figures: {undrawable}")


def redraw(directory: Path, policies: Sequence[str] = ()) -> None:
    """Draw the figures of a result directory again, and print its results.

    If ``policies`` are given, only these are drawn.
    """
    console, specification = Console(), read_specification(directory)
    with local_executor(available_cores()) as executor:
        _draw_figures(directory, specification, executor, console, policies, everything=True)
    _print(directory, specification, console, drawn=True)


def say(console: Console, sentence: str) -> None:
    """Print a sentence as it is, however long."""
    console.print(sentence, soft_wrap=True, markup=False)


def _plans(
    specifications: Sequence[Specification], options: RunOptions, console: Console
) -> list[tuple[Specification, list[Cell], Path]]:
    """The checked experiments of which ``--only`` selects some cells; refuse if there are none."""
    plans, refusals = [], []
    for specification in specifications:
        small = specification.quickly(options.replicas) if options.quick else specification
        changed = small.changed(replicas=options.replicas, seed=options.seed)
        try:
            chosen = cells(changed, options.only, more=options.all)
        except InputError as error:
            refusals.append((changed.name, error))
            continue
        if changed.experiment == "offline":
            require_extra("logs", f"{changed.name}, an experiment on logs,", "pyarrow")
        ignoring = dry_run(chosen)
        if ignoring and options.own_file:
            names = ", ".join(ignoring)
            say(
                console,
                f"{changed.name}: {names} {'do' if len(ignoring) > 1 else 'does'} not look at the "
                "context; the default, rcp-adaptive, does.",
            )
        directory = options.out / changed.name
        check_directory(directory, changed)
        plans.append((changed, chosen, directory))
    if not plans:
        raise refusals[0][1]
    for name, reason in refusals:
        say(console, f"{name} is left out: {reason}")
    return plans


def _run(
    specification: Specification,
    chosen: list[Cell],
    directory: Path,
    executor: Executor,
    console: Console,
) -> None:
    name, count, todo = specification.name, len(chosen), list[Cell]()
    if specification.experiment != "illustration":
        todo = unfinished(directory, chosen)
        if len(todo) < count:
            say(console, f"{name}: {count - len(todo)} of {count} cells are already finished.")
    with progress(name, todo, console) as finished:
        RUNS[specification.experiment](specification, chosen, directory, executor, finished)


def _draw_figures(
    directory: Path,
    specification: Specification,
    executor: Executor,
    console: Console,
    policies: Sequence[str] = (),
    *,
    everything: bool = False,
) -> None:
    from submax.research.paper.figures import (
        draw_figure,
        draw_illustration,
        draw_offline,
        figures_of,
    )
    from submax.simulation.figures import outdated

    if specification.experiment != "sweep":
        draw = draw_offline if specification.experiment == "offline" else draw_illustration
        draw(directory)
        return
    figures = figures_of(directory)
    # Figures that were asked for are drawn in any case: others may be there.
    if not everything:
        figures = outdated(directory, figures)
    one_figure = partial(draw_figure, directory, policies=policies)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, disable=not figures) as bar:
        task = bar.add_task(f"{specification.name}: figures", total=len(figures))
        for _ in executor.map(one_figure, reversed(figures)):
            bar.advance(task)


def _print(directory: Path, specification: Specification, console: Console, *, drawn: bool) -> None:
    PRINTED[specification.experiment](specification, directory, console)
    figures = f", figures in {directory / 'figures'}"
    later = f"; to draw their figures: submax plot {directory}"
    say(console, f"Results are in {directory}{figures if drawn else later}")


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM stop a run after the current cells, and a second signal at once."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def exit_at_once(number: int, frame: FrameType | None) -> None:
        os._exit(INTERRUPTED)

    def stop(number: int, frame: FrameType | None) -> None:
        for each in before:
            signal.signal(each, exit_at_once)
        print(
            "Stopping after the current cells; press Ctrl-C again to stop at once.", file=sys.stderr
        )
        raise KeyboardInterrupt

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
