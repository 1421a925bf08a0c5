"""Runs experiments, then draws their figures and prints their results."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from submax.cli.main import INTERRUPTED
from submax.cli.tables import print_illustration, print_offline, print_sweep
from submax.core.checks import whole_number
from submax.core.errors import InputError
from submax.core.optional import missing_extra, require_extra
from submax.research.paper.reproduce import run_illustration, run_offline, write_claims
from submax.simulation.experiment import Cell, Specification, cells, policy_of
from submax.simulation.results import check_directory, read_specification
from submax.simulation.runner import (
    Meter,
    available_cores,
    dask_executor,
    dry_run,
    local_executor,
    run_sweep,
    unfinished,
)


@contextmanager
def progress(
    name: str, todo: Sequence[Cell], meter: Meter, console: Console, *, refits: bool
) -> Iterator[Callable[[str, object], None]]:
    """Draw a live progress bar; yield a function to call with each finished cell.

    The bar counts decisions, and ``refits`` if this is true.
    """
    bar = Progress(*_columns(), console=console, disable=not todo)
    decisions = {cell.key: cell.decisions for cell in todo}
    before = meter.decisions, meter.updates
    done: list[int] = []
    stop = threading.Event()

    def show() -> None:
        # Workers of a cluster do not update the meter: for them only finished cells count.
        taken = max(meter.decisions - before[0], sum(done))
        rate = taken / max(bar.tasks[task].elapsed or 0.0, 1e-3)
        fits = f", {meter.updates - before[1]} refits" if refits else ""
        bar.update(
            task, completed=taken, cells=len(done), counted=f"{_short(rate)} decisions/s{fits}"
        )

    def follow() -> None:
        while not stop.wait(0.5):
            show()

    def finished(key: str, result: object) -> None:
        done.append(decisions[key])
        show()

    with bar:
        total = sum(decisions.values())
        task = bar.add_task(name, total=total, cells=0, of=len(todo), counted="")
        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        try:
            yield finished
        finally:
            stop.set()
            follower.join()


def _columns() -> list[ProgressColumn]:
    return [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[cells]} of {task.fields[of]} cells"),
        TextColumn("{task.fields[counted]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False, compact=True),
    ]


def _figure_columns() -> list[ProgressColumn]:
    return [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]


def _short(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:.1f} k"


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
    own_file: bool = False
    """Whether the experiments are the user's own, who is told of policies that ignore a context."""

    def processes(self, meter: Meter) -> AbstractContextManager[Executor]:
        """Return an executor of processes on this machine, which start when they have work."""
        return local_executor(available_cores() if self.jobs is None else self.jobs, meter)

    def workers(self, local: Executor) -> AbstractContextManager[Executor]:
        """Return the executor that runs the cells: the cluster, if one was given."""
        return nullcontext(local) if self.scheduler is None else dask_executor(self.scheduler)

    def choose_device(self) -> None:
        """Set the device on which this process and its workers train networks."""
        if self.device == "cpu":
            os.environ["JAX_PLATFORMS"] = "cpu"
        if self.device == "gpu":
            require_extra("neural", "--device gpu", "jax")
            # Workers share the GPU with this process, which must not reserve its memory.
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
            from submax.models.nn.training import check_gpu

            check_gpu()


@dataclass(frozen=True)
class RunPlan:
    """An experiment that was checked: its specification, its cells and its result directory."""

    specification: Specification
    chosen: list[Cell]
    directory: Path

    @property
    def trains_networks(self) -> bool:
        """Whether any of its policies trains networks."""
        policies = {cell.policy_name: cell.policy for cell in self.chosen}
        return any(policy_of(one).traits.trains_models for one in policies.values())


def run_experiments(specifications: Sequence[Specification], options: RunOptions) -> None:
    """Check all experiments, then run one after the other, then draw and print the results."""
    if options.jobs is not None:
        whole_number("--jobs", options.jobs, at_least=1)
    if options.scheduler is not None and options.jobs is not None:
        raise InputError(
            "--jobs and --scheduler are both given, and a cluster has its own workers: leave "
            "--jobs out"
        )
    options.choose_device()
    if options.scheduler is not None and options.device is not None:
        raise InputError(
            "--device and --scheduler are both given, and the workers of a cluster choose their "
            "own device: leave --device out"
        )
    console, meter = Console(), Meter()
    plans = _plans(specifications, options, console)
    with _interruptible(), options.processes(meter) as local, options.workers(local) as executor:
        for plan in plans:
            _run(plan, executor, meter, console)
        undrawable = missing_extra("plots", "drawing", "matplotlib")
        figures = options.figures and not undrawable
        for plan in plans:
            if figures:
                _draw_figures(plan.directory, plan.specification, local, console)
            _print(plan.directory, plan.specification, console, drawn=figures)
        if options.figures and undrawable:
            console.print(f"No figures: {undrawable}", soft_wrap=True, markup=False)


def redraw(directory: Path, policies: Sequence[str] = ()) -> None:
    """Draw the figures of a result directory again, and print its results.

    If ``policies`` are given, only these are drawn.
    """
    console, specification = Console(), read_specification(directory)
    with local_executor(available_cores()) as executor:
        _draw_figures(directory, specification, executor, console, policies, everything=True)
    _print(directory, specification, console, drawn=True)


def _plans(
    specifications: Sequence[Specification], options: RunOptions, console: Console
) -> list[RunPlan]:
    """Return the experiments of which ``--only`` selects some cells; refuse if there are none."""
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
            console.print(_ignored_context(changed.name, ignoring), soft_wrap=True, markup=False)
        directory = options.out / changed.name
        check_directory(directory, changed)
        plans.append(RunPlan(changed, chosen, directory))
    if not plans:
        raise refusals[0][1]
    for name, reason in refusals:
        console.print(f"{name} is left out: {reason}", soft_wrap=True, markup=False)
    return plans


def _ignored_context(experiment: str, policies: Sequence[str]) -> str:
    """Return a sentence on policies that do not look at the context of their environment."""
    several = len(policies) > 1
    verb = "do" if several else "does"
    return (
        f"{experiment}: the {'policies' if several else 'policy'} {', '.join(policies)} {verb} not "
        "look at the context; the default, rcp-adaptive, does."
    )


def _run(plan: RunPlan, executor: Executor, meter: Meter, console: Console) -> None:
    if plan.specification.experiment == "illustration":
        run_illustration(plan.specification, plan.directory)
        return
    todo = unfinished(plan.specification, plan.directory, plan.chosen)
    name = plan.specification.name
    if len(todo) < len(plan.chosen):
        finished_before = len(plan.chosen) - len(todo)
        console.print(
            f"{name}: {finished_before} of {len(plan.chosen)} cells are already finished."
        )
    if todo:
        console.print(f"{name}: {len(todo)} cells to run.")
    with progress(name, todo, meter, console, refits=plan.trains_networks) as finished:
        arguments = (plan.specification, plan.chosen, plan.directory, executor, finished)
        if plan.specification.experiment == "offline":
            run_offline(*arguments)
        else:
            run_sweep(*arguments, write_more=write_claims)


def _draw_figures(
    directory: Path,
    specification: Specification,
    executor: Executor,
    console: Console,
    policies: Sequence[str] = (),
    *,
    everything: bool = False,
) -> None:
    if specification.experiment == "illustration":
        from submax.research.paper.figures import draw_illustration

        draw_illustration(directory)
    elif specification.experiment == "offline":
        from submax.research.paper.figures import draw_offline

        draw_offline(directory)
    else:
        from submax.research.paper.figures import draw_figure, figures_of
        from submax.simulation.figures import DrawnFigures

        drawn, figures = DrawnFigures(directory), figures_of(directory)
        # Figures that were asked for are drawn in any case: others may be there.
        if not everything:
            figures = drawn.outdated(figures)
        draw = partial(draw_figure, directory, policies=policies)
        with Progress(*_figure_columns(), console=console, disable=not figures) as bar:
            task = bar.add_task(f"{specification.name}: figures", total=len(figures))
            for _ in executor.map(draw, reversed(figures)):
                bar.advance(task)
        drawn.note([] if policies else figures)


def _print(directory: Path, specification: Specification, console: Console, *, drawn: bool) -> None:
    if specification.experiment == "illustration":
        print_illustration(directory, console)
    elif specification.experiment == "offline":
        print_offline(specification, directory, console)
    else:
        print_sweep(specification, directory, console)
    sentence = f"Results are in {directory}"
    if drawn:
        sentence += f", figures in {directory / 'figures'}"
    else:
        sentence += f"; to draw their figures: submax plot {directory}"
    console.print(sentence, soft_wrap=True, markup=False)


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
