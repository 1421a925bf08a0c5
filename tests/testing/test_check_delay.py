import numpy as np
import pytest

from submax import BatchedRewards
from submax.simulation.delays import Step
from submax.testing import check_delay

UNSEEDED = np.random.default_rng(0)


class DropsTheRest(BatchedRewards):
    def schedule(self, observations):
        yield Step(1, 0)
        for _ in range((observations - 1) // 2):
            yield Step(2, 2)


class TooEarly(BatchedRewards):
    def schedule(self, observations):
        yield Step(1, observations)
        if observations > 1:
            yield Step(observations - 1, 0)


class DecidesNothing(BatchedRewards):
    def schedule(self, observations):
        yield Step(observations, 0)
        yield Step(0, observations)


class TakesBack(BatchedRewards):
    def schedule(self, observations):
        yield Step(observations, -1)


class AtRandom(BatchedRewards):
    def schedule(self, observations):
        for _ in range(observations):
            yield Step(1, int(UNSEEDED.integers(2)))


class NegativeLength(BatchedRewards):
    @property
    def length(self):
        return -1


@pytest.mark.parametrize(
    ("delay", "rule"),
    [
        (DropsTheRest(3), "the decisions must add up to the observations"),
        (TooEarly(3), "no reward may come back before its decision is taken"),
        (DecidesNothing(3), "every step must take at least one decision"),
        (TakesBack(3), "give back no fewer than 0 rewards"),
        (AtRandom(30), "the schedule must be the same twice"),
        (NegativeLength(3), "length must be 0 or more"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_broken_delay_is_found_out(delay, rule):
    with pytest.raises(AssertionError, match=rule):
        check_delay(delay)
