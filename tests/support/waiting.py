"""Wait for a condition instead of for a time: a busy machine makes a test slow, not wrong."""

import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def wait_until(condition: Callable[[], Result], seconds: float = 300.0) -> Result:
    """Return what ``condition`` returns as soon as that is true; fail after ``seconds``."""
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"not true within {seconds} seconds"
        time.sleep(0.01)
    return result
