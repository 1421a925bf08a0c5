"""Summaries fit one screen and are safe to show in a browser."""

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from submax.core.summary import LINES, WIDTH, Summary, number

TEXTS = st.text(max_size=120)
EXAMPLES = 100 if "SUBMAX_SOAK" in os.environ else 40


@settings(max_examples=EXAMPLES)
@given(
    st.lists(TEXTS, min_size=1, max_size=6),
    st.integers(1, 7).flatmap(
        lambda width: st.lists(st.lists(TEXTS, min_size=width, max_size=width), min_size=1)
    ),
    st.integers(0, 5),
)
def test_any_summary_fits_one_screen(sentences, rows, more):
    columns = [f"column {place}" for place in range(len(rows[0]))]
    lines = str(Summary(sentences, columns, rows, more=more)).split("\n")
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= WIDTH


@given(st.lists(st.lists(st.text(alphabet="<>&\"'ab\n"), min_size=2, max_size=2)))
def test_html_is_escaped(rows):
    html = Summary(["<script>"], ["<a>", "b"], rows).html()
    inside = html.replace("<", "").count("script>")
    assert inside == 0
    known = ("div", "p", "table", "thead", "tbody", "tr", "th", "td")
    for part in html.split("<")[1:]:
        assert part.lstrip("/").split(">")[0].split(" ")[0] in known


def test_what_is_left_out_is_counted():
    rows = [[str(place)] for place in range(100)]
    summary = Summary(["one"], ["place"], rows, more=7)
    assert f"… and {100 - summary.room + 7} more" in str(summary)
    assert f"… and {100 - summary.room + 7} more" in summary.html()


def test_all_rows_are_shown_if_they_fit():
    rows = [[str(place)] for place in range(LINES - 2)]
    assert len(str(Summary(["one"], ["place"], rows)).split("\n")) == LINES
    assert "more" not in str(Summary(["one"], ["place"], rows))


def test_numbers_are_short():
    assert [number(value) for value in (0.0, 1.0, 1234.5, -123456.0, 1e12, float("nan"))] == [
        "0",
        "1",
        "1234",
        "-123,456",
        "1e+12",
        "–",
    ]
