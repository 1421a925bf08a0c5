import numpy as np
from refusals import raises_code

from submax import RecordedRewards, make_policy, simulate
from submax.testing.rules.goodness_of_fit import goodness_of_fit


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
    with raises_code("invalid-input"):
        _ = RecordedRewards(str(file)).names
