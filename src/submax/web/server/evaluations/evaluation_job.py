"""One evaluation, in a process that runs ``submax.web.server.evaluations.evaluation_job``."""

import os
import sys
import tempfile
import warnings
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import msgspec

from submax.core.errors import InputError, SubmaxError
from submax.live.bandits.open import open_store
from submax.live.log.export import Export
from submax.policies import make_policy
from submax.schema.names import known_type
from submax.web.server.evaluations.evaluation_result import EvaluationResult, evaluation_result

if TYPE_CHECKING:
    import pyarrow as pa

NICENESS = 19
"""The lowest priority: the process runs when decisions leave a core idle."""
MOST_ROWS = 200_000
"""Decisions that are evaluated, the newest, so that an evaluation takes minutes and not hours."""
STEPS = ("The log is written to a file.", "The log is read.", "Policies learn and are evaluated.")
"""What is done, one after the other."""


class EvaluationJob(msgspec.Struct, frozen=True):
    """Evaluate ``policies`` on the log of a ``bandit`` in the store at a ``place``.

    If ``exported`` is given, the log is read from this file instead.
    """

    place: str | None
    bandit: str
    policies: list[str | dict[str, Any]]
    exported: str | None = None

    def run(self) -> EvaluationResult:
        """Evaluate the policies, and print a line of JSON when each step begins."""
        # Imported here: the server imports this module for its classes, and evaluates nothing.
        from submax.evaluation import Log, compare

        for policy in self.policies:
            if not isinstance(policy, str):
                # A wrong parameter is refused before the log is read.
                make_policy({key: value for key, value in policy.items() if key != "name"})
        with tempfile.TemporaryDirectory() as folder:
            path = Path(self.exported or Path(folder) / "log.parquet")
            _print(JobProgress(step=1))
            if self.exported is None and self.place is not None:
                with closing(open_store(self.place, read_only=True)) as store:
                    Export(store, self.bandit).write(path)
            _print(JobProgress(step=2))
            table, total = newest_rows(path, MOST_ROWS)
            if not len(table):
                raise InputError(
                    "the log has no decision yet, and an evaluation needs some hundreds: evaluate "
                    "when there are more"
                )
            log = Log.read(table)
        _print(JobProgress(step=3))
        found = compare(log, self.policies)
        if len(table) < total:
            note = f"evaluated on the newest {len(table):,} of {total:,} decisions"
            found.notes.append(note)
        return evaluation_result(found)


class JobProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A line that the process prints: the step that begins, the result, or why it failed."""

    step: int = 0
    result: EvaluationResult | None = None
    error: str = ""


def newest_rows(path: Path, most: int) -> "tuple[pa.Table, int]":
    """The last rows of a Parquet file, at most so many, and the number of all rows.

    Only the groups of rows that hold them are read.
    """
    # Imported here: to import it is a fifth of the time that a server takes to start.
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        total, first, kept = file.metadata.num_rows, file.num_row_groups, 0
        while first and kept < most:
            first -= 1
            kept += file.metadata.row_group(first).num_rows
        table = file.read_row_groups(list(range(first, file.num_row_groups)))
    return table.slice(max(len(table) - most, 0)), total


def main() -> None:
    """Run the job that is written as a line of JSON on standard input; print progress as JSON.

    The server keeps standard input open. When it ends, even by a kill, this process ends as well.
    """
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=known_type(EvaluationJob))
    Thread(target=_end_with_server, daemon=True).start()
    warnings.simplefilter("ignore")
    try:
        _print(JobProgress(result=job.run()))
    except SubmaxError as error:
        _print(JobProgress(error=str(error)))
    except OSError as error:
        reason = error.strerror or error
        _print(
            JobProgress(error=f"the log cannot be read on the server ({reason}): free some space")
        )


def _end_with_server() -> None:
    """End this process when the other end of standard input is closed."""
    # Read without the buffer of Python, whose lock must be free when this process ends.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


def _print(line: JobProgress) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(line) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
