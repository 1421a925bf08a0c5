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
from submax.plots.style import LOOKS, look_of
from submax.policies import presets

LONG = "from scratch, reservoir 2000, discount 0.9997"


@pytest.fixture(scope="module")
def traces():
    return {
        name: simulate(
            Bernoulli(4), make_policy(name), observations=300, delay=BatchFlush(20), replicas=9
        )
        for name in ("random", "rcp-submax", "thompson-1-1")
    }


def test_curves_show_mean_and_range(traces):
    figure = plots.curves(traces, title="four arms")
    (axes,) = figure.axes
    assert axes.get_title() == "four arms"
    assert [line.get_label() for line in axes.lines] == list(traces)
    for line, ribbon, trace in zip(axes.lines, axes.collections, traces.values(), strict=True):
        regret = trace.accumulated_regret
        assert line.get_ydata()[-1] == pytest.approx(regret[:, -1].mean())
        low, high = np.quantile(regret[:, -1], [0.025, 0.975])
        heights = ribbon.get_paths()[0].vertices
        at_end = heights[heights[:, 0] == 300][:, 1]
        assert at_end.min() == pytest.approx(low)
        assert at_end.max() == pytest.approx(high)


def test_reward_can_be_drawn_instead(traces):
    (axes,) = plots.curves(traces, measure="reward").axes
    assert axes.lines[0].get_ydata()[-1] == pytest.approx(traces["random"].final_reward.mean())
    assert axes.get_ylabel().startswith("accumulated reward")


@pytest.mark.parametrize("measure", ["regret", "reward"])
def test_the_axis_says_what_is_shown_and_over_how_many_replicas(traces, measure):
    (axes,) = plots.curves(traces, measure=measure).axes
    assert axes.get_ylabel() == f"accumulated {measure}\n(mean, 95 % of 9 replicas)"
    assert axes.get_xlabel() == "observations"


def test_many_curves_have_no_ribbons_and_random_choice_does_not_set_the_scale(traces):
    many = {f"own-{number}": traces["rcp-submax"] for number in range(6)}
    (axes,) = plots.curves({"random": traces["random"], **many}).axes
    assert not axes.collections
    assert axes.get_ylabel() == "accumulated regret\n(mean of 9 replicas)"
    highest = traces["rcp-submax"].accumulated_regret.mean(axis=0).max()
    assert axes.get_ylim()[1] == pytest.approx(1.05 * highest)


@pytest.mark.parametrize("name", ["random", "neural-epsilon-greedy-0.1", LONG])
def test_the_names_of_policies_are_within_the_figure(traces, name):
    figure = plots.curves({name: traces["random"]})
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    assert axes.get_legend().get_window_extent().x1 <= figure.bbox.x1
    assert axes.get_window_extent().width == pytest.approx(3.89 * figure.dpi)


def test_what_cannot_be_drawn_says_why(traces):
    with raises_code("invalid-input", "measure"):
        plots.curves(traces, measure="regrets")
    with raises_code("invalid-input"):
        plots.curves({})


def marks(looks):
    """What is left of looks without their colours."""
    return [(str(look.dash), look.marker, look.width) for look in looks]


def test_every_preset_has_a_look():
    assert set(presets()) <= set(LOOKS)


@pytest.mark.parametrize(
    "name", [*paper_experiments(), *beyond_experiments(), *bakeoff_experiments()]
)
def test_the_policies_of_an_experiment_can_be_told_apart_in_black_and_white(name):
    shown = [policy_name(policy) for policy in load_named(name).policies]
    found = marks(look_of(policy, position) for position, policy in enumerate(shown))
    assert len(set(found)) == len(found)


def test_policies_for_real_valued_actions_look_like_no_other():
    own = {name for name in LOOKS if name.startswith(("grid-", "fourier-"))}
    assert len(own) == 5
    drawn = dict(zip(LOOKS, marks(LOOKS.values()), strict=True))
    for name in own:
        assert [other for other in LOOKS if drawn[other] == drawn[name]] == [name]


def test_policies_without_a_name_in_the_library_differ_by_position():
    unknown = [look_of(f"mine-{position}", position) for position in range(6)]
    assert len(set(unknown)) == 6
