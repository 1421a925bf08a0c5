import itertools

from hypothesis import given
from hypothesis import strategies as st

from submax.live.log.log_clock import LogClock

TIMES = st.lists(st.integers(-(10**6), 10**6).map(float), min_size=1, max_size=30)


@given(TIMES)
def test_the_time_elapsed_is_the_sum_of_the_steps_forward(times):
    clock = LogClock()
    elapsed = [clock.advance(at) for at in times]
    steps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert elapsed == [sum(step for step in steps[:n] if step > 0) for n in range(len(times))]


@given(TIMES, st.floats(-1e6, 1e6))
def test_what_would_be_is_what_comes_and_asking_moves_nothing(times, at):
    clock, other = LogClock(), LogClock()
    for one in times:
        clock.would_be(at)
        assert clock.would_be(one) == clock.advance(one) == other.advance(one)


@given(TIMES, st.integers(0, 29))
def test_a_clock_goes_on_from_what_was_kept_of_it(times, place):
    clock = LogClock()
    for at in times[:place]:
        clock.advance(at)
    again = LogClock(clock.elapsed, clock.last)
    assert [again.advance(at) for at in times[place:]] == [
        clock.advance(at) for at in times[place:]
    ]
