"""Many independent cells, given to an executor, stored as they finish."""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, as_completed
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Stored = TypeVar("Stored", contravariant=True)


class Store(Protocol[Stored]):
    """Holds what cells resulted in; a key is ``finished`` once its result was written whole."""

    def finished(self, key: str) -> bool:
        """Whether the cell is there, and whole."""
        ...

    def write(self, key: str, result: Stored) -> None:
        """Store a finished cell, whole or not at all."""
        ...


def sweep(
    tasks: Mapping[str, Task],
    run: Callable[[Task], Result],
    store: Store[Result],
    executor: Executor,
    finished: Callable[[str, Result], None],
) -> None:
    """Run every task whose key is not in the store yet; ``finished`` hears of each one stored.

    A sweep that was killed goes on where it stopped: what is stored is not run again, what is not
    stored is. An error in one task, or an interruption, cancels those that have not begun; those
    under way are waited for and stored.
    """
    missing = {key: task for key, task in tasks.items() if not store.finished(key)}
    futures = {executor.submit(run, task): key for key, task in missing.items()}
    try:
        for future in as_completed(futures):
            key = futures[future]
            result = future.result()
            store.write(key, result)
            finished(key, result)
    except BaseException:
        under_way = [future for future in futures if not future.cancel()]
        for future in as_completed(under_way):
            if future.exception() is None and not store.finished(futures[future]):
                store.write(futures[future], future.result())
        raise
