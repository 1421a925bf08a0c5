"""Turns of threads are short while a block needs it, and as they were afterwards."""

import sys
import time
from threading import Event, Thread

import pytest

from submax.core.running.short_turns import ShortTurns

LONG = 0.05


@pytest.fixture
def long_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(LONG)
    yield sys.getswitchinterval()
    sys.setswitchinterval(before)


def test_turns_are_short_until_the_last_block_ends(long_turns):
    turns = ShortTurns(0.001)
    with turns:
        with turns:
            assert sys.getswitchinterval() == pytest.approx(0.001, abs=2e-6)
        assert sys.getswitchinterval() == pytest.approx(0.001, abs=2e-6)
    assert sys.getswitchinterval() == long_turns


def test_turns_are_the_same_after_many_blocks(long_turns):
    for number in range(1, 300):
        sys.setswitchinterval(1e-5 * number)
        before, turns = sys.getswitchinterval(), ShortTurns()
        for _ in range(3):
            with turns:
                pass
        assert sys.getswitchinterval() == before


def test_a_function_has_short_turns_even_if_it_fails(long_turns):
    turns = ShortTurns(0.001)

    @turns
    def fail():
        assert sys.getswitchinterval() == pytest.approx(0.001, abs=2e-6)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert sys.getswitchinterval() == long_turns


def test_turns_that_somebody_else_sets_are_left_alone(long_turns):
    with ShortTurns(0.5):
        assert sys.getswitchinterval() == long_turns
    with ShortTurns(0.001):
        sys.setswitchinterval(0.02)
    assert sys.getswitchinterval() == pytest.approx(0.02, abs=2e-6)


def test_another_thread_soon_has_its_turn(long_turns):
    """Whoever waits for something needs a turn each time; the other thread computes."""
    stop = Event()

    def compute():
        with ShortTurns():
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
