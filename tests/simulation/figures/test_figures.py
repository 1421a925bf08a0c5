import numpy as np
import pytest
from refusals import raises_code

from submax import BatchedRewards, Bernoulli, make_policy, simulate
from submax.simulation.figures import curves


@pytest.fixture(scope="module")
def traces():
    return {
        name: simulate(
            Bernoulli(4), make_policy(name), observations=300, delay=BatchedRewards(20), replicas=9
        )
        for name in ("random", "rcp-submax", "thompson-1-1")
    }


@pytest.mark.parametrize("measure", ["regret", "reward"])
def test_curves_show_mean_and_range(traces, measure):
    figure = curves(traces, measure=measure, title="four arms")
    (axes,) = figure.axes
    assert axes.get_title() == "four arms"
    assert "9 replicas" in axes.get_ylabel()
    assert [line.get_label() for line in axes.lines] == list(traces)
    for line, ribbon, trace in zip(axes.lines, axes.collections, traces.values(), strict=True):
        final = getattr(trace, f"final_{measure}")
        assert line.get_ydata()[-1] == pytest.approx(final.mean())
        low, high = np.quantile(final, [0.025, 0.975])
        heights = ribbon.get_paths()[0].vertices
        at_end = heights[heights[:, 0] == 300][:, 1]
        assert at_end.min() == pytest.approx(low)
        assert at_end.max() == pytest.approx(high)


def test_many_curves_have_no_ribbons_and_random_choice_does_not_set_the_scale(traces):
    many = {f"own-{number}": traces["rcp-submax"] for number in range(6)}
    (axes,) = curves({"random": traces["random"], **many}).axes
    assert not axes.collections
    highest = traces["rcp-submax"].accumulated_regret.mean(axis=0).max()
    assert axes.get_ylim()[1] == pytest.approx(1.05 * highest)


def test_what_cannot_be_drawn_is_refused(traces):
    with raises_code("invalid-input", "measure"):
        curves(traces, measure="regrets")
    with raises_code("invalid-input"):
        curves({})
