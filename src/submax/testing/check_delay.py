"""Conformance suite of delays."""

import numpy as np

from submax.core.contracts.feedback import Feedback
from submax.simulation.delay import Delay, Step
from submax.simulation.pending import Pending
from submax.testing.rules.require import require


def check_delay(delay: Delay) -> None:
    """Raise an AssertionError where ``delay`` breaks its contract."""
    require(delay.length >= 0, delay, "length must be 0 or more")
    for observations in sorted({1, 2, 7, delay.length, delay.length + 1, 3 * delay.length + 2}):
        if observations > 0:
            _check_amounts(delay, observations)
            _check_order(delay, observations)


def _check_amounts(delay: Delay, observations: int) -> None:
    steps = list(delay.schedule(observations))
    decided = np.cumsum([step.decide for step in steps])
    received = np.cumsum([step.receive for step in steps])
    require(
        all(step.decide >= 1 and step.receive >= 0 for step in steps),
        delay,
        "every step must take at least one decision and give back no fewer than 0 rewards",
    )
    require(decided[-1] == observations, delay, "the decisions must add up to the observations")
    require(
        np.all(received <= decided), delay, "no reward may come back before its decision is taken"
    )
    require(
        steps == list(delay.schedule(observations)), delay, "the schedule must be the same twice"
    )


def _check_order(delay: Delay, observations: int) -> None:
    pending, taken, back = Pending(), 0, []
    for step in delay.schedule(observations):
        pending.put(_numbered(taken, step))
        taken += step.decide
        if step.receive:
            back.extend(pending.take(step.receive).reward[0].tolist())
    require(back == list(range(len(back))), delay, "rewards must come back first in, first out")


def _numbered(first: int, step: Step) -> Feedback:
    reward = np.arange(first, first + step.decide, dtype=np.float64)[None]
    shape = reward.shape
    nothing = np.zeros((*shape, 0))
    return Feedback(nothing, np.zeros((*shape, 1), np.int64), reward, None, np.ones(shape))
