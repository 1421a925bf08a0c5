"""Many independent cells, given to an executor, stored as they finish."""

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, as_completed
from typing import TypeVar

from submax.simulation.cell_result import CellResult
from submax.simulation.cell_store import CellStore

Task = TypeVar("Task")


def sweep(
    tasks: Mapping[str, Task],
    run: Callable[[Task], CellResult],
    store: CellStore,
    executor: Executor,
    finished: Callable[[str, CellResult], None],
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
