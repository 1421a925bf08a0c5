"""A progress bar for the cells of an experiment."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from submax.simulation.runner import Cell, Meter


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


def _short(rate: float) -> str:
    return f"{rate / 1e6:.2f} M" if rate >= 1e6 else f"{rate / 1e3:.1f} k"
