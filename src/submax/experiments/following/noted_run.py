"""Runs cells with a note of when each began, and why one failed."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from submax.core.errors import one_line
from submax.experiments.running.cells import Cell

Result = TypeVar("Result")
RUNNING, FAILED = ".running", ".failed"
"""The endings of notes in the folder of a run: one per cell that runs, and that failed."""


@dataclass(frozen=True)
class NotedRun(Generic[Result]):
    """A function that runs a cell in any process, and leaves notes in a ``folder``.

    The folder may not exist on the worker of a cluster: then there are no notes.
    """

    run: Callable[[Cell], Result]
    folder: Path

    def __call__(self, cell: Cell) -> Result:
        """Run the cell; an error is noted and raised again."""
        running = self.folder / f"{cell.key}{RUNNING}"
        _write(running, "")
        try:
            return self.run(cell)
        except Exception as error:
            _write(self.folder / f"{cell.key}{FAILED}", one_line(error))
            raise
        finally:
            with suppress(OSError):
                running.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    with suppress(OSError):
        path.write_text(text, encoding="utf-8")
