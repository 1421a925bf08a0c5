import numpy as np
import pytest

from submax.plots.panel import PanelCurve
from submax.plots.paper_figures import best_of_families, paired_figure, paper_figure
from submax.plots.paper_methods import method_of

STEPS = np.arange(1, 51)


def curve(name, slope):
    mean = slope * STEPS.astype(float)
    return PanelCurve(name, STEPS, mean, 0.9 * mean, 1.1 * mean)


CURVES = [
    curve("random", 5.0),
    curve("ucb1", 4.0),
    curve("epsilon-greedy-0.1", 3.0),
    curve("epsilon-greedy-0.2", 2.5),
    curve("thompson-1-9", 2.0),
    curve("rcp-optimistic", 2.2),
    curve("rcp-optimized", 1.8),
    curve("rcp-submax", 1.0),
    curve("rcp-adaptive", 0.5),
    curve("kl-ucb", 3.5),
]


@pytest.mark.parametrize(
    ("policy", "family"),
    [
        ("neural-epsilon-greedy-0.05", "ε-greedy"),
        ("climbing-epsilon-greedy-0.05", "ε-greedy"),
        ("dropout-thompson", "TS"),
        ("thompson-1-99", "TS"),
        ("rcp-submax", "SubMax"),
    ],
)
def test_policies_belong_to_the_families_of_the_paper(policy, family):
    assert method_of(policy).label == family


@pytest.mark.parametrize("policy", ["rcp-adaptive", "kl-ucb", "thompson-fitted", "ucb1-pending"])
def test_policies_that_are_not_in_the_paper_have_no_family(policy):
    assert method_of(policy) is None


def test_a_family_is_represented_by_its_best_member():
    chosen = {one.look.label: one.policy for one in best_of_families(CURVES, "regret")}
    assert chosen == {
        "random": "random",
        "UCB1": "ucb1",
        "ε-greedy": "epsilon-greedy-0.2",
        "TS": "thompson-1-9",
        "optimistic": "rcp-optimistic",
        "optimized": "rcp-optimized",
        "SubMax": "rcp-submax",
    }
    highest = {one.look.label: one.policy for one in best_of_families(CURVES, "reward")}
    assert highest["ε-greedy"] == "epsilon-greedy-0.1"


def test_panels_have_letters_ribbons_for_three_curves_and_a_closer_look():
    figure = paper_figure([CURVES, CURVES], ["$K=10$", "$K=100$"], "regret", 2)
    first, second, near, _ = figure.axes
    assert first.get_title(loc="left") == "(a) $K=10$"
    assert second.get_title(loc="left") == "(b) $K=100$"
    # SubMax, random, and the best classic method, which is Thompson sampling.
    assert len(first.collections) == 3
    assert len(first.lines) == 7
    # The closer look has only lines, of methods with at most twice the lowest regret.
    assert not near.collections
    ends = [line.get_ydata()[-1] for line in near.lines]
    assert 1 < len(ends) < 7
    assert max(ends) <= 2 * min(ends)
    labels = {text.get_text() for text in first.texts}
    assert labels == {"random", "UCB1", "ε-greedy 0.2", "TS 9", "optimistic", "optimized", "SubMax"}
    heights = sorted(text.xyann[1] for text in first.texts)
    top = first.get_ylim()[1]
    assert np.all(np.diff(heights) >= 0.06 * top)
    assert heights[-1] <= top


def test_a_single_panel_has_no_empty_columns_beside_it():
    figure = paper_figure([CURVES], ["$s=-3$"], "reward", 3)
    (axes,) = figure.axes
    assert axes.get_title(loc="left") == "$s=-3$"


def test_a_panel_without_methods_of_the_paper_is_left_out():
    figure = paper_figure([[curve("kl-ucb", 1.0)]], ["$K=10$"], "regret", 1)
    assert not any(axes.get_visible() for axes in figure.axes)


def test_paired_rewards_are_differences_to_random_choice():
    rng = np.random.default_rng(0)
    world = rng.normal(100, 20, size=30)
    rewards = {"random": world, "rcp-submax": world + 5 + rng.normal(size=30)}
    (axes,) = paired_figure(rewards, list(rewards)).axes
    (container,) = axes.containers
    assert container.lines[0].get_xdata()[0] == pytest.approx(
        (rewards["rcp-submax"] - world).mean()
    )
    assert [label.get_text() for label in axes.get_yticklabels()] == ["rcp-submax"]
