import numpy as np
import pytest

from submax.simulation.figures.sweep import (
    PanelCurve,
    best_of_families,
    paired_figure,
    paper_figure,
)

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


def test_a_family_is_represented_by_its_best_member():
    """Policies that are not in the paper belong to no family."""
    alone = {"random", "ucb1", "rcp-optimistic", "rcp-optimized", "rcp-submax"}
    lowest = {one.policy for one in best_of_families(CURVES, "regret")}
    assert lowest == {*alone, "epsilon-greedy-0.2", "thompson-1-9"}
    highest = {one.policy for one in best_of_families(CURVES, "reward")}
    assert highest == {*alone, "epsilon-greedy-0.1", "thompson-1-9"}


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
    heights = sorted(text.xyann[1] for text in first.texts)
    top = first.get_ylim()[1]
    assert np.all(np.diff(heights) >= 0.06 * top)
    assert heights[-1] <= top


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
