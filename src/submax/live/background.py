"""Work in the background that waits while a decision is under way."""

import os
from contextlib import AbstractContextManager, ContextDecorator, nullcontext
from threading import Condition, Lock, local
from time import perf_counter

PAUSE_SECONDS = 0.001
"""How long background work waits for decisions at most: two to five decisions."""
STRETCH_SECONDS = 0.0002
"""How long background work goes on at least between two pauses. So it gets about a sixth of the
time, however many decisions there are, and a fit on a busy server takes up to six times as long."""
NOTHING: AbstractContextManager[None] = nullcontext()


class BackgroundWork(ContextDecorator):
    """A block that computes while others decide, such as the fit of a version.

    Inside a block, ``give_way`` is called between two steps, and waits while a block of
    ``held_off`` is entered in another thread.
    """

    def __init__(self, pause: float = PAUSE_SECONDS, stretch: float = STRETCH_SECONDS) -> None:
        self._pause, self._stretch = pause, stretch
        self.forget()

    def forget(self) -> None:
        """Forget all blocks: a forked process has none of the threads that are inside of them."""
        self._lock = Lock()
        self._entered = 0
        self._urgent = UrgentWork()
        self._here = ThreadState()

    def __enter__(self) -> None:
        here = self._here
        if here.blocks == 0:
            here.resumed = perf_counter()
        here.blocks += 1
        with self._lock:
            self._entered += 1

    def __exit__(self, *_: object) -> None:
        self._here.blocks -= 1
        with self._lock:
            self._entered -= 1

    def held_off(self) -> AbstractContextManager[None]:
        """Return a block that background work waits for, such as a decision.

        It may be entered in any thread and left in another one. It holds off nobody if there is no
        work in the background when this is called.
        """
        return self._urgent if self._entered else NOTHING

    @property
    def is_held_off(self) -> bool:
        """Whether anybody is in a block of ``held_off``."""
        return self._urgent.count > 0

    def give_way(self) -> None:
        """Wait while background work is held off, but not for long, and not too often.

        Nothing happens in a thread that is not inside a block. Locks that a decision needs must not
        be held by the caller.
        """
        if not self.is_held_off:
            return
        here = self._here
        if here.blocks and perf_counter() - here.resumed >= self._stretch:
            self._urgent.wait(self._pause)
            here.resumed = perf_counter()


class ThreadState(local):
    """How many blocks this thread has entered, and when it has last begun to compute."""

    blocks = 0
    resumed = 0.0


class UrgentWork(AbstractContextManager[None]):
    """A block that any number of threads can be in; ``count`` is how many there are."""

    def __init__(self) -> None:
        self.count = 0
        # A lock that its thread may take again: garbage that is collected while it is held may be a
        # decision that was given up, whose block ends then.
        self._changed = Condition()

    def __enter__(self) -> None:
        with self._changed:
            self.count += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self.count -= 1
            if not self.count:
                self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until nobody is in a block, for so many seconds at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self.count, seconds)


BACKGROUND = BackgroundWork()
"""The background work of this process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BACKGROUND.forget)
