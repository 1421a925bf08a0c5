"""A progress bar for a simulation, in a terminal or a notebook."""

from collections.abc import Iterator
from contextlib import contextmanager

from submax.simulation.running.progress_tally import Progress


@contextmanager
def progress_bar(name: str, decisions: int) -> Iterator[Progress]:
    """Show a bar while the block runs; yield the function that `simulate` calls.

    ``decisions`` is their number in all replicas.
    """
    # Imported here because most simulations show no bar.
    from rich.progress import Progress as Bar

    with Bar() as bar:
        task = bar.add_task(name, total=decisions)

        def advance(taken: int, updates: int) -> None:
            bar.advance(task, taken)

        yield advance
