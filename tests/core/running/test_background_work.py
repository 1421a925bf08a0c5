"""Work in the background takes short turns and waits for decisions, but not for ever."""

import os
import subprocess
import sys
import time
from threading import Event, Thread

import pytest

from submax.core.running.background_work import BackgroundWork

LONG = 0.05
PATIENCE = 30.0
"""Longer than anything here takes; a test that waits this long has failed."""

FORK = """
import os
from submax.core.running.background_work import BACKGROUND
with BACKGROUND, BACKGROUND.held_off(), BACKGROUND._lock:
    child = os.fork()
    if child == 0:
        assert not BACKGROUND.is_held_off
        with BACKGROUND:
            os._exit(0)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
"""Whoever forks holds work off, and the lock as well, as another thread might."""


@pytest.fixture
def long_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(LONG)
    yield sys.getswitchinterval()
    sys.setswitchinterval(before)


def test_turns_are_short_until_the_last_block_ends(long_turns):
    work = BackgroundWork(0.001)
    with work:
        with work:
            assert sys.getswitchinterval() == pytest.approx(0.001, abs=2e-6)
        assert sys.getswitchinterval() == pytest.approx(0.001, abs=2e-6)
    assert sys.getswitchinterval() == long_turns


def test_turns_are_the_same_after_many_blocks(long_turns):
    for number in range(1, 300):
        sys.setswitchinterval(1e-5 * number)
        before, work = sys.getswitchinterval(), BackgroundWork()
        for _ in range(3):
            with work:
                pass
        assert sys.getswitchinterval() == before


def test_a_function_has_short_turns_even_if_it_fails(long_turns):
    work = BackgroundWork(0.001)

    @work
    def fail():
        assert sys.getswitchinterval() == pytest.approx(0.001, abs=2e-6)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert sys.getswitchinterval() == long_turns


def test_turns_that_somebody_else_sets_are_left_alone(long_turns):
    with BackgroundWork(0.5):
        assert sys.getswitchinterval() == long_turns
    with BackgroundWork(0.001):
        sys.setswitchinterval(0.02)
    assert sys.getswitchinterval() == pytest.approx(0.02, abs=2e-6)


def test_another_thread_soon_has_its_turn(long_turns):
    """Whoever waits for something needs a turn each time; the other thread computes."""
    stop = Event()

    def compute():
        with BackgroundWork():
            while not stop.is_set():
                pass

    thread = Thread(target=compute)
    thread.start()
    begin = time.monotonic()
    for _ in range(20):
        time.sleep(0.001)
    spent = time.monotonic() - begin
    stop.set()
    thread.join()
    # By long turns it would take twenty of them.
    assert spent < 10 * LONG


class Steps:
    """Background work in a thread, which gives way before every step and counts its steps."""

    def __init__(self, work):
        self.work, self.count, self.ended = work, 0, Event()
        self.thread = Thread(target=self._run, daemon=True)

    def _run(self):
        with self.work:
            while not self.ended.is_set():
                self.work.give_way()
                self.count += 1

    def __enter__(self):
        self.thread.start()
        self.wait_for(1)
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join(PATIENCE)

    def wait_for(self, count):
        """Wait until so many more steps were made."""
        goal, end = self.count + count, time.monotonic() + PATIENCE
        while self.count < goal:
            assert time.monotonic() < end, "the work does not go on"
            time.sleep(0.001)


def test_work_waits_until_the_last_decision_ends():
    with Steps(BackgroundWork(pause=PATIENCE, stretch=0.0)) as steps:
        with steps.work.held_off():
            with steps.work.held_off():
                # One step may have begun before.
                most = steps.count + 1
                time.sleep(0.05)
                assert steps.count <= most
            time.sleep(0.05)
            assert steps.count <= most
        steps.wait_for(2)


def test_work_goes_on_while_there_is_always_a_decision():
    with Steps(BackgroundWork(pause=0.001, stretch=0.0)) as steps, steps.work.held_off():
        steps.wait_for(20)


def test_work_computes_for_a_while_between_two_pauses():
    work = BackgroundWork(pause=PATIENCE, stretch=PATIENCE)
    begin = time.monotonic()
    with work, work.held_off():
        work.give_way()
    assert time.monotonic() - begin < PATIENCE


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_forked_process_has_no_work_of_its_parent():
    ended = subprocess.run([sys.executable, "-c", FORK], timeout=PATIENCE, check=False)
    assert ended.returncode == 0


def test_only_threads_that_work_in_the_background_give_way():
    work = BackgroundWork(pause=PATIENCE, stretch=0.0)
    with work:
        pass
    with Steps(work), work.held_off():
        begin = time.monotonic()
        work.give_way()
        assert time.monotonic() - begin < PATIENCE


def test_a_decision_that_fails_holds_off_nobody_any_longer():
    with Steps(BackgroundWork(pause=PATIENCE, stretch=0.0)) as steps:
        with pytest.raises(ZeroDivisionError), steps.work.held_off():
            raise ZeroDivisionError
        steps.wait_for(2)


def test_nothing_is_held_off_if_there_is_no_work():
    work = BackgroundWork(pause=PATIENCE, stretch=0.0)
    with work.held_off(), work:
        begin = time.monotonic()
        work.give_way()
        assert time.monotonic() - begin < PATIENCE
