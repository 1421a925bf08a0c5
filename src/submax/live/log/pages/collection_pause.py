"""Keep Python's garbage collector from running while a page of a log is read."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_pause() -> Iterator[None]:
    """Pause the garbage collector for the block, if it is on.

    A page makes tens of thousands of objects, none of them in a cycle. The collector would look at
    all of them several times, which takes a third of the time of reading.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
