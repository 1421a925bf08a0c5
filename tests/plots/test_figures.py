import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from refusals import raises_code

from submax import BatchFlush, Bernoulli, make_policy, plots, simulate
from submax.experiments.specification import (
    bakeoff_experiments,
    beyond_experiments,
    load_named,
    paper_experiments,
    policy_name,
)


@pytest.fixture(scope="module")
def traces():
    return {
        name: simulate(
            Bernoulli(4), make_policy(name), observations=300, delay=BatchFlush(20), replicas=9
        )
        for name in ("random", "rcp-submax", "thompson-1-1")
    }


@pytest.mark.parametrize("measure", ["regret", "reward"])
def test_curves_show_mean_and_range(traces, measure):
    figure = plots.curves(traces, measure=measure, title="four arms")
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
    (axes,) = plots.curves({"random": traces["random"], **many}).axes
    assert not axes.collections
    highest = traces["rcp-submax"].accumulated_regret.mean(axis=0).max()
    assert axes.get_ylim()[1] == pytest.approx(1.05 * highest)


def test_long_names_of_policies_are_within_the_figure(traces):
    figure = plots.curves({"from scratch, reservoir 2000, discount 0.9997": traces["random"]})
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    assert axes.get_legend().get_window_extent().x1 <= figure.bbox.x1
    assert axes.get_window_extent().width == pytest.approx(3.89 * figure.dpi)


def test_what_cannot_be_drawn_is_refused(traces):
    with raises_code("invalid-input", "measure"):
        plots.curves(traces, measure="regrets")
    with raises_code("invalid-input"):
        plots.curves({})


@pytest.mark.parametrize(
    "names",
    [
        *(
            [policy_name(policy) for policy in load_named(name).policies]
            for name in (*paper_experiments(), *beyond_experiments(), *bakeoff_experiments())
        ),
        [f"mine-{number}" for number in range(6)],
    ],
    ids=lambda names: names[-1],
)
def test_the_policies_of_an_experiment_can_be_told_apart_in_black_and_white(traces, names):
    (axes,) = plots.curves(dict.fromkeys(names, traces["random"])).axes
    marks = [
        (str(line._dash_pattern), line.get_marker(), line.get_linewidth()) for line in axes.lines
    ]
    assert len(set(marks)) == len(names)
