"""Rewards from a table of every decision, and from a log."""

import numpy as np
import pytest
from refusals import raises_code

from submax import (
    BatchedRewards,
    Lag,
    RecordedRewards,
    make_policy,
    simulate,
)
from submax.research import Adversarial
from submax.testing.assertions import goodness_of_fit

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


def test_rewards_are_drawn_from_those_of_the_action(seed):
    log = RecordedRewards.of(["b", "a", "b", "b"], [1.0, 7.0, 2.0, 2.0])
    trace = simulate(
        log, make_policy("random"), observations=500, replicas=8, seed=seed, points=None
    )
    assert log.names == ["a", "b"]
    arm = trace.actions[..., 0]
    assert set(trace.rewards[arm == 0]) == {7.0}
    drawn = (trace.rewards[arm == 1] == 2.0).astype(np.int64)
    assert goodness_of_fit(drawn, np.array([1 / 3, 2 / 3])) > 1e-9
    np.testing.assert_allclose(
        trace.accumulated_regret, (arm == 1).cumsum(axis=1) * (7 - 5 / 3), rtol=1e-9
    )


def test_a_log_file_names_its_columns(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("arm,paid\nx,1\ny,0\n", encoding="utf-8")
    environment = RecordedRewards(str(file), action="arm", reward_column="paid")
    assert environment.names == ["x", "y"]
    with raises_code("invalid-input", "action"):
        _ = RecordedRewards(str(file)).names
