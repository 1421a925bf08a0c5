"""The page of growth says which goals are met, from the numbers of the benchmark alone."""

import csv
from pathlib import Path

import pytest

GENERATORS = Path(__file__).parents[2] / "docs" / "generators"
DEFAULT = "counting (default)"
CELLS = {
    (DEFAULT, 10_000): {"update_cpu_ms": 40, "decide_p99_ms": 2, "decide_p99_updating_ms": 3},
    (DEFAULT, 30_000): {"update_cpu_ms": 80, "decide_p99_ms": 2, "decide_p99_updating_ms": 10},
    ("", 10_000): {"read_events_per_s": 250_000},
}


@pytest.fixture
def page(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(GENERATORS))
    import growth_page
    import growth_results

    file = tmp_path / "growth.csv"
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(("log", "policy", "rows", "measure", "value", "machine"))
        for (policy, rows), measured in CELLS.items():
            for name, value in measured.items():
                writer.writerow(("no context", policy, rows, name, value, "two cores"))
    monkeypatch.setattr(growth_results, "FILE", file)
    return growth_page


def test_values_that_miss_a_goal_are_bold(page):
    text = page.with_tables("<!-- goals --><!-- goals -->")
    update = "update with 100 new rows, ms of processor time"
    assert f"| {update} | {DEFAULT}, no context | 40 | **80** | at most 50 |" in text
    during = "decide p99 during an update, times p99 without"
    assert f"| {during} | {DEFAULT}, no context | 1.5 | **5** | at most 2 |" in text
    assert "| first read, events/s | the log, no context | 250,000 |  | at least 200,000 |" in text
    assert "| measure | of | 10⁴ | 3·10⁴ | goal |" in text


def test_the_summary_counts_what_was_measured(page):
    text = page.with_tables("<!-- summary --><!-- summary -->")
    assert "| ms of processor time | at most 50 | 1 of 2 cells | 80 | 2.0 |" in text
    assert "| on disk, compacted | bytes a decision | at most 250 | not measured |  |  |" in text


def test_the_machine_is_named_and_other_text_is_kept(page):
    before = "A page.\n<!-- machine --><!-- machine -->\n"
    text = page.with_tables(before)
    assert text.startswith("A page.\n")
    assert "Measured on: two cores." in text
    assert page.with_tables(text) == text


def test_the_figure_is_drawn(page, tmp_path):
    page.draw(page.Growth(), tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")
