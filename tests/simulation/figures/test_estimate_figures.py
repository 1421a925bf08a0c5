"""Figures of off-policy estimates: forest plots, and errors where the truth is known."""

import csv

import numpy as np
import pytest

from submax.cli.logs.printing import write_estimates
from submax.evaluation.comparison import Comparison, Estimate
from submax.evaluation.diagnostics import Diagnostics
from submax.evaluation.estimators import off_policy_estimators
from submax.evaluation.forest import ESTIMATES, draw_forest
from submax.evaluation.intervals import ConfidenceInterval
from submax.research.paper.figures import draw_offline

FOUND = Diagnostics(100, 90.0, 2.0, 0.02, 1.0, 0.1, 0.0, 45.0, 0.0)
NAN, INFINITY = float("nan"), float("inf")
TRUTH = 0.4


def estimate(policy, estimator, value, *cautions, low=None, high=None):
    ends = ConfidenceInterval(
        value - 0.1 if low is None else low, value + 0.1 if high is None else high
    )
    return Estimate(policy, estimator, value, ends, None, FOUND, cautions)


def write(folder, *estimates):
    """Some estimates, behind that of the policy that wrote the log."""
    first = estimate("logging policy", "mean", 0.5)
    write_estimates(folder, Comparison([first, *estimates], [], 0.95))
    return folder


@pytest.fixture
def forest(tmp_path, drawn):
    def draw(*estimates):
        draw_forest(write(tmp_path, *estimates))
        return drawn["forest.png"].axes[0]

    return draw


def marks(axes):
    """The marks of estimates by their names."""
    names = {
        float(tick): one.get_text()
        for tick, one in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    }
    lines = [line for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata())]
    return {names[float(line.get_ydata()[0])]: line for line in lines}


def test_doubtful_numbers_have_hollow_marks_and_a_line_in_the_legend(forest):
    axes = forest(estimate("one", "ips", 0.6), estimate("one", "dr", 0.7, "a warning"))
    found = marks(axes)
    assert {name: float(line.get_xdata()[0]) for name, line in found.items()} == {
        "ips": 0.6,
        "dr": 0.7,
    }
    hollow = {name: line.get_markerfacecolor() == "white" for name, line in found.items()}
    assert hollow == {"ips": False, "dr": True}
    assert len(axes.figure.legends[0].get_texts()) == 2
    axes = forest(estimate("one", "ips", 0.6))
    assert len(axes.figure.legends[0].get_texts()) == 1


def test_policies_are_headings_of_their_estimates(forest):
    axes = forest(
        estimate("one", "ips", 0.6), estimate("one", "dr", 0.61), estimate("two", "ips", 0.7)
    )
    labels = [one.get_text() for one in axes.get_yticklabels()]
    assert labels == ["one", "ips", "dr", "two", "ips"]


def test_every_estimator_has_a_colour_of_its_own_and_keeps_it(forest):
    names = [*off_policy_estimators(), '{"kind": "clipped"}', '{"kind": "replay"}']
    every = marks(forest(*(estimate("one", name, 0.6) for name in names)))
    colours = {name: line.get_color() for name, line in every.items()}
    assert list(colours) == names
    assert len(set(colours.values())) == len(names)
    for name in ("ips", "dr"):
        both = marks(forest(estimate("one", "a table", 0.5), estimate("one", name, 0.6)))
        assert both[name].get_color() == colours[name]
    # There may be more tables than colours.
    assert len(marks(forest(*(estimate("one", f"table {n}", 0.6) for n in range(30))))) == 30


def test_intervals_are_drawn_from_end_to_end(forest):
    axes = forest(estimate("one", "ips", 0.6, low=0.2, high=0.7))
    ends = [tuple(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 2]
    assert (0.2, 0.7) in ends


def test_unknown_numbers_and_names_with_signs_of_mathematics_are_drawn(tmp_path):
    """Rendered, because only then such a name could be read as a formula."""
    folder = write(
        tmp_path,
        estimate('{"kind": "$HOME/my_{policy$.py"}', "snips", NAN, "no weight"),
        estimate("one", "dm", 0.6, low=-INFINITY, high=INFINITY),
    )
    paths = draw_forest(folder)
    assert [path.name for path in paths] == ["forest.png", "forest.pdf"]
    assert all(path.stat().st_size > 1000 for path in paths)


@pytest.fixture
def offline(tmp_path, drawn):
    """The figure of rows (file, policy, estimator, value), each the estimate of a replica."""

    def draw(rows):
        with (tmp_path / ESTIMATES).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["file", "policy", "estimator", "value", "truth"])
            writer.writerows([*row, TRUTH] for row in rows)
        assert [path.name for path in draw_offline(tmp_path)] == ["offline.png", "offline.pdf"]
        return [axes for axes in drawn["offline.png"].axes if axes.axison]

    return draw


def test_a_bar_goes_from_the_tenth_to_the_ninetieth_percentile_of_the_errors(offline):
    values = np.random.default_rng(3).normal(0.5, 0.1, 21)
    (axes,) = offline([("iris", "linucb", "ips", value) for value in values])
    (bar,) = axes.containers
    line, _, (ends,) = bar.lines
    low, middle, high = np.quantile(values - TRUTH, [0.1, 0.5, 0.9])
    assert line.get_ydata() == pytest.approx([middle])
    assert ends.get_segments()[0][:, 1] == pytest.approx([low, high])


def test_there_is_a_panel_for_each_configuration_and_a_mark_for_each_policy(offline):
    panels = offline(
        (file, policy, estimator, 0.5)
        for file in ("iris", "wine", "digits")
        for policy in ("random", "linucb")
        for estimator in ("ips", "dr")
    )
    assert [axes.get_title() for axes in panels] == ["iris", "wine", "digits"]
    assert [bar.get_label() for bar in panels[0].containers] == ["random", "linucb"]
    assert [one.get_text() for one in panels[0].get_xticklabels()] == ["ips", "dr"]
