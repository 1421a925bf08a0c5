import numpy as np

from submax import BatchFlush, Bernoulli, make_policy, simulate
from submax.simulation.cell_result import CellResult, Seconds


def test_the_late_slope_is_the_regret_per_decision_in_the_last_tenth(seed):
    trace = simulate(
        Bernoulli(4),
        make_policy("rcp-submax"),
        observations=200,
        replicas=3,
        delay=BatchFlush(20),
        seed=seed,
    )
    result = CellResult.of(trace, Seconds(0.0))
    late = (trace.steps >= 180).nonzero()[0]
    regret = trace.accumulated_regret[:, late]
    slope = (regret[:, -1] - regret[:, 0]) / (trace.steps[late[-1]] - trace.steps[late[0]])
    assert trace.steps[late[0]] == 180
    np.testing.assert_allclose(result.late_slope, slope)


def test_a_run_of_one_decision_has_a_slope_of_zero():
    trace = simulate(Bernoulli(4), make_policy("random"), observations=1, replicas=3)
    np.testing.assert_array_equal(CellResult.of(trace, Seconds(0.0)).late_slope, np.zeros(3))
