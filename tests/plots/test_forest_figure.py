import pytest
from matplotlib.figure import Figure

from submax.cli.logs.evaluation_report import write_estimates
from submax.evaluation.intervals.confidence_interval import ConfidenceInterval
from submax.evaluation.off_policy import off_policy_estimators
from submax.evaluation.report.comparisons.comparison import Comparison, Estimate
from submax.evaluation.report.diagnosis.diagnostics import Diagnostics
from submax.plots import forest_figure
from submax.plots.forest_figure import OTHER_COLOURS, draw_forest

FOUND = Diagnostics(100, 90.0, 2.0, 0.02, 1.0, 0.1, 0.0, 45.0, 0.0)
NAN = float("nan")


def estimate(policy, estimator, value, *cautions, low=None, high=None):
    ends = ConfidenceInterval(
        value - 0.1 if low is None else low, value + 0.1 if high is None else high
    )
    return Estimate(policy, estimator, value, ends, None, FOUND, cautions)


@pytest.fixture
def drawn(tmp_path, monkeypatch):
    """The figure of some estimates, behind that of the policy that wrote the log.

    If it is not ``rendered``, its files are empty, which takes a tenth of the time.
    """
    figures = []

    def keeping(*arguments, **options):
        figures.append(Figure(*arguments, **options))
        return figures[-1]

    monkeypatch.setattr(forest_figure, "Figure", keeping)

    def draw(*estimates, rendered=True):
        first = estimate("logging policy", "mean", 0.5)
        write_estimates(tmp_path, Comparison([first, *estimates], [], 0.95))
        with monkeypatch.context() as patched:
            if not rendered:
                patched.setattr(Figure, "savefig", lambda figure, path, **options: path.touch())
            paths = draw_forest(tmp_path)
        assert [path.name for path in paths] == ["forest.png", "forest.pdf"]
        assert all(path.stat().st_size > 1000 for path in paths if rendered)
        return figures[-1]

    return draw


def marks(figure):
    """Every estimate's mark, by its value: whether it is hollow."""
    lines = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    return {
        float(line.get_xdata()[0]): line.get_markerfacecolor() == "white"
        for line in lines
        if len(line.get_xdata())
    }


def colours(figure):
    """The colour of every estimate, by its name."""
    axes = figure.axes[0]
    names = {
        float(tick): one.get_text()
        for tick, one in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    }
    lines = [line for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata())]
    return {names[float(line.get_ydata()[0])]: line.get_color() for line in lines}


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_doubtful_numbers_have_hollow_marks_and_the_legend_says_why(drawn):
    figure = drawn(estimate("one", "ips", 0.6), estimate("one", "dr", 0.7, "a warning"))
    assert marks(figure) == {0.6: False, 0.7: True}
    assert legend(figure) == ["logging policy, as logged", "with a warning"]


def test_without_warnings_the_legend_has_none(drawn):
    figure = drawn(estimate("one", "ips", 0.6), rendered=False)
    assert legend(figure) == ["logging policy, as logged"]


def test_policies_are_headings_of_their_estimates(drawn):
    figure = drawn(
        estimate("one", "ips", 0.6), estimate("one", "dr", 0.61), estimate("two", "ips", 0.7)
    )
    labels = figure.axes[0].get_yticklabels()
    assert [one.get_text() for one in labels] == ["one", "ips", "dr", "two", "ips"]
    assert [one.get_fontweight() == "bold" for one in labels] == [True, False, False, True, False]


def test_every_estimator_has_a_colour_of_its_own(drawn):
    names = [*off_policy_estimators(), '{"kind": "clipped"}', '{"kind": "replay"}']
    estimates = [estimate("one", name, 0.6) for name in names]
    found = colours(drawn(*estimates, rendered=False))
    assert list(found) == names
    assert len(set(found.values())) == len(names)


def test_an_estimator_keeps_its_colour_whatever_others_are_shown(drawn):
    estimates = [estimate("one", name, 0.6) for name in off_policy_estimators()]
    every = colours(drawn(*estimates, rendered=False))
    for name, colour in every.items():
        table = estimate("one", "a table", 0.5)
        both = drawn(table, estimate("one", name, 0.6), rendered=False)
        assert colours(both)[name] == colour


def test_there_may_be_more_tables_than_colours(drawn):
    count = len(OTHER_COLOURS) + 1
    assert len(colours(drawn(*(estimate("one", f"table {n}", 0.6) for n in range(count))))) == count


def test_intervals_are_drawn_from_end_to_end(drawn):
    figure = drawn(estimate("one", "ips", 0.6, low=0.2, high=0.7), rendered=False)
    ends = [tuple(line.get_xdata()) for line in figure.axes[0].lines if len(line.get_xdata()) == 2]
    assert (0.2, 0.7) in ends


def test_numbers_that_are_not_known_leave_a_gap(drawn):
    figure = drawn(
        estimate("one", "snips", NAN, "no weight"),
        estimate("one", "dm", 0.6, low=float("-inf"), high=float("inf")),
    )
    assert 0.6 in marks(figure)


def test_names_with_signs_of_mathematics_are_drawn_as_they_are(drawn):
    name = '{"kind": "$HOME/my_{policy$.py"}'
    figure = drawn(estimate(name, "ips", 0.6))
    assert figure.axes[0].get_yticklabels()[0].get_text() == name
