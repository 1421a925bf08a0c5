"""Rewards from a table of every decision."""

import numpy as np
import pytest
from refusals import raises_code

from submax import (
    BatchedRewards,
    Lag,
    make_policy,
    simulate,
)
from submax.research import Adversarial

TABLE = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.25, 0.75, 0.5], [1.0, 0.0, 0.5]])


@pytest.mark.parametrize("delay", [BatchedRewards(1), BatchedRewards(3), Lag(2)])
def test_rewards_are_those_of_the_table_under_every_delay(delay):
    trace = simulate(
        Adversarial.of(TABLE),
        make_policy("random"),
        observations=4,
        replicas=5,
        delay=delay,
        points=None,
    )
    expected = TABLE[np.arange(4), trace.actions[..., 0]]
    np.testing.assert_array_equal(trace.rewards, expected)
    regret = (TABLE.max(axis=1) - expected).cumsum(axis=1)
    np.testing.assert_allclose(trace.accumulated_regret, regret)


def test_the_best_fixed_arm_is_that_of_the_sums():
    assert Adversarial.of(TABLE).best_fixed_arm(4) == (0, 2.25)
    assert Adversarial.of(TABLE).best_fixed_arm(3) == (1, 1.75)


def test_a_file_has_a_row_for_each_decision(tmp_path):
    file = tmp_path / "rewards.csv"
    file.write_text("left,right\n1,0\n0,1\n", encoding="utf-8")
    environment = Adversarial(str(file))
    assert environment.most_decisions == 2
    with raises_code("invalid-input", "observations"):
        simulate(environment, make_policy("random"), observations=3)
    with raises_code("invalid-input", "rewards"):
        Adversarial.of([1.0, 2.0])
