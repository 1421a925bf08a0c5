"""Processor time of a piece of work."""

from collections.abc import Callable
from time import process_time


def seconds(work: Callable[[], object]) -> float:
    """How long it takes, once."""
    begin = process_time()
    work()
    return process_time() - begin
