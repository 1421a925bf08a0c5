import csv

import numpy as np
import pytest
from matplotlib.figure import Figure

from submax.plots import offline_figure
from submax.plots.estimates import ESTIMATES
from submax.plots.offline_figure import draw_offline

TRUTH = 0.4


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """The figure of rows (file, policy, estimator, value), each the estimate of a replica."""
    figures = []

    def keeping(*arguments, **options):
        figures.append(Figure(*arguments, **options))
        return figures[-1]

    monkeypatch.setattr(offline_figure, "Figure", keeping)

    def draw(rows):
        with (tmp_path / ESTIMATES).open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["file", "policy", "estimator", "value", "truth"])
            writer.writerows([*row, TRUTH] for row in rows)
        assert [path.name for path in draw_offline(tmp_path)] == ["offline.png", "offline.pdf"]
        return figures[-1]

    return draw


def test_a_bar_goes_from_the_tenth_to_the_ninetieth_percentile_of_the_errors(drawn):
    values = np.random.default_rng(3).normal(0.5, 0.1, 21)
    figure = drawn([("iris", "linucb", "ips", value) for value in values])
    (bar,) = figure.axes[0].containers
    line, _, (ends,) = bar.lines
    low, middle, high = np.quantile(values - TRUTH, [0.1, 0.5, 0.9])
    assert line.get_ydata() == pytest.approx([middle])
    assert ends.get_segments()[0][:, 1] == pytest.approx([low, high])


def test_there_is_a_panel_for_each_configuration_and_a_mark_for_each_policy(drawn):
    figure = drawn(
        (file, policy, estimator, 0.5)
        for file in ("iris", "wine", "digits")
        for policy in ("random", "linucb")
        for estimator in ("ips", "dr")
    )
    panels = [axes for axes in figure.axes if axes.axison]
    assert [axes.get_title() for axes in panels] == ["iris", "wine", "digits"]
    assert [bar.get_label() for bar in panels[0].containers] == ["random", "linucb"]
    assert [one.get_text() for one in panels[0].get_xticklabels()] == ["ips", "dr"]
