import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_code

from submax.simulation.batch_flush import BatchFlush
from submax.simulation.lag import Lag
from submax.simulation.random_delays.geometric import Geometric


@given(st.integers(1, 60), st.integers(0, 60))
def test_every_reward_comes_back_after_that_many_further_decisions(observations, steps):
    known, back = [], 0
    for decide, receive in Lag(steps).schedule(observations):
        known += [back] * decide
        back += receive
    assert known == [max(decision - steps, 0) for decision in range(observations)]
    assert back == max(observations - steps, 0)


@given(st.integers(1, 40))
def test_no_lag_is_a_batch_of_one(observations):
    assert list(Lag(0).schedule(observations)) == list(BatchFlush(1).schedule(observations))


def test_its_length_is_the_number_of_steps():
    assert Lag(30).length == 30
    assert Lag() == Lag(0)


@pytest.mark.parametrize("steps", [-1, 1.0, True, "3", None, float("nan")])
def test_bad_steps_are_refused(steps):
    with raises_code("invalid-input", "steps of lag"):
        Lag(steps)


@pytest.mark.parametrize("delay", [Lag(0), Lag(3), BatchFlush(1), BatchFlush(2), Geometric(2.0)])
def test_one_by_one_means_a_single_decision_between_rewards(delay):
    steps = list(delay.schedule(12))
    begin = next((place for place, step in enumerate(steps) if step.receive), len(steps))
    single = bool(steps[begin + 1 :]) and all(step == (1, 1) for step in steps[begin + 1 :])
    assert delay.one_by_one == single
