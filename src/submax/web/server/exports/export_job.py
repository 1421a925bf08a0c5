"""An export in a process of its own: ``python -m submax.web.server.exports.export_job``."""

import os
import sys
from contextlib import closing
from pathlib import Path
from threading import Thread

import msgspec

from submax.core.decoding import known_type
from submax.core.errors import Error, StoreError
from submax.live.bandits.open import open_store
from submax.live.log.export import Export

NICENESS = 19
"""The lowest priority: the process runs when decisions leave a core idle."""


class ExportJob(msgspec.Struct, frozen=True):
    """Write the log of a ``bandit`` in the store at a ``place`` as Parquet to a ``path``."""

    place: str
    bandit: str
    path: str

    def run(self) -> None:
        """Write the file."""
        with closing(open_store(self.place, read_only=True)) as store:
            Export(store, self.bandit).write(Path(self.path))


class ExportFailure(msgspec.Struct, frozen=True):
    """Why an export failed; ``outage`` if it may succeed later."""

    sentence: str
    outage: bool


def main() -> None:
    """Run the job that is written as a line of JSON on standard input; print a failure as JSON.

    The server keeps standard input open. When it ends, even by a kill, this process ends as well.
    """
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=known_type(ExportJob))
    Thread(target=_end_with_server, daemon=True).start()
    try:
        job.run()
    except Error as error:
        _print(ExportFailure(str(error), isinstance(error, StoreError)))
    except OSError as error:
        sentence = (
            f"the export cannot be written on the server ({error.strerror or error}): free some "
            "space there and try again"
        )
        _print(ExportFailure(sentence, outage=True))


def _end_with_server() -> None:
    """End this process when the other end of standard input is closed."""
    # Read without the buffer of Python, whose lock must be free when this process ends.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


def _print(failure: ExportFailure) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(failure))


if __name__ == "__main__":
    main()
