"""A stopwatch for processor time."""

from collections.abc import Callable
from time import process_time


def seconds(work: Callable[[], object]) -> float:
    """The processor time of one call of ``work``, in seconds."""
    begin = process_time()
    work()
    return process_time() - begin
