"""A sweep: many independent tasks that an executor runs, each result stored when it is there."""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, as_completed
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Stored = TypeVar("Stored", contravariant=True)


class ResultStore(Protocol[Stored]):
    """Holds the results of tasks by key."""

    def finished(self, key: str) -> bool:
        """Whether a complete result is stored under the key."""
        ...

    def write(self, key: str, result: Stored) -> None:
        """Store a result atomically: a crash leaves no partial one."""
        ...


def sweep(
    tasks: Mapping[str, Task],
    run: Callable[[Task], Result],
    store: ResultStore[Result],
    executor: Executor,
    finished: Callable[[str, Result], None],
) -> None:
    """Run every task that has no result in the store yet.

    ``finished`` is called with the key and the result after a result is stored. A sweep that was
    killed resumes where it stopped, because tasks with stored results are not run again. An error
    in one task, or an interruption, cancels the tasks that have not started; tasks that are
    running are waited for and their results stored.
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
        running = [future for future in futures if not future.cancel()]
        for future in as_completed(running):
            if future.exception() is None and not store.finished(futures[future]):
                store.write(futures[future], future.result())
        raise
