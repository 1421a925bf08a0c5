"""What a trace shows of itself."""

import numpy as np
import pytest

import submax
from submax.core.numerics.standard_error import standard_error


@pytest.mark.parametrize(
    ("observations", "replicas", "points"), [(500, 5, 50), (1, 1, 1), (3, 2, 3)]
)
def test_a_trace_shows_its_final_regret_with_its_standard_error(observations, replicas, points):
    trace = submax.simulate(
        submax.Bernoulli(5),
        submax.make_policy("random"),
        observations=observations,
        replicas=replicas,
        points=points,
    )
    lines = repr(trace).split("\n")
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert f"{trace.final_regret.mean():.4g}" in lines[1]
    if replicas > 1:
        assert f"± {standard_error(trace.final_regret):.2g}" in lines[1]
    assert lines[-1].split()[0] == str(observations)
    assert trace._repr_html_().startswith("<div><p>Trace")


def test_it_is_still_a_tuple():
    trace = submax.simulate(submax.Bernoulli(2), submax.make_policy("random"), observations=3)
    steps, *_ = trace
    np.testing.assert_array_equal(steps, [1, 2, 3])
