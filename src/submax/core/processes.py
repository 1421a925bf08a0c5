"""What a process of submax sets for itself: signals, environment variables, threads."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from submax.core.errors import InputError

Answer = TypeVar("Answer")


def end_with_parent() -> None:
    """Let the parent handle signals, and exit when the parent exits, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        sentinel = parent.sentinel

        def exit_after() -> None:
            multiprocessing.connection.wait([sentinel])
            os._exit(1)

        threading.Thread(target=exit_after, daemon=True).start()


def in_thread(function: Callable[[], Answer], name: str) -> Future[Answer]:
    """What a function returns, in a thread for which the end of the process does not wait."""
    outcome: Future[Answer] = Future()
    outcome.set_running_or_notify_cancel()

    def run() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return outcome


BY_FILE = "_FILE"
"""``SUBMAX_STORE_FILE`` names a file with the value of ``SUBMAX_STORE``, such as a secret of a
container."""
INVALID_VARIABLE = "invalid-variable"
"""The code of an error about an environment variable with a wrong value."""


def variable_text(name: str, environment: Mapping[str, str]) -> tuple[str, str | None]:
    """The variable that has a value, and its text: that of ``name``, or of a file that it names.

    An empty variable counts as absent, because it takes back one that a container file sets.

    >>> variable_text("SUBMAX_PORT", {"SUBMAX_PORT": "8000"})
    ('SUBMAX_PORT', '8000')
    >>> variable_text("SUBMAX_PORT", {"SUBMAX_PORT": ""})
    ('SUBMAX_PORT', None)
    """
    if text := environment.get(name):
        return name, text
    by_file = name + BY_FILE
    file = environment.get(by_file)
    if not file:
        return name, None
    try:
        return by_file, Path(file).read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"the variable {by_file} was {file!r:.80}, which cannot be read "
            f"({getattr(error, 'strerror', None) or error}): name a file that holds the "
            "value, or unset the variable",
            code=INVALID_VARIABLE,
        ) from error


SINGLE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def prefer_single_thread() -> None:
    """Limit linear algebra of this process to one thread, unless the user has set the variables.

    This works only before numpy is imported.
    """
    for name, value in SINGLE_THREAD.items():
        os.environ.setdefault(name, value)
