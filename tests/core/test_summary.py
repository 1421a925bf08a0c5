"""Summaries fit one screen."""

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from submax.core.summary import LINES, WIDTH, Summary

# All of Unicode in the soak: to set up its table takes two seconds.
ALPHABET = (
    st.characters() if "SUBMAX_SOAK" in os.environ else "ab <&\t\n\r\x00\x85\u0301\u200b\u2028é漢🙂"
)
TEXTS = st.text(ALPHABET, max_size=60)
EXAMPLES = 100 if "SUBMAX_SOAK" in os.environ else 10


@settings(max_examples=EXAMPLES)
@given(
    st.lists(TEXTS, min_size=1, max_size=4),
    st.lists(TEXTS, min_size=1, max_size=5),
    st.integers(1, 3 * LINES),
    st.integers(0, 5),
)
def test_any_summary_fits_one_screen(sentences, row, rows, more):
    columns = [f"column {place}" for place in range(len(row))]
    table = [[3 * text for text in row[place % 2 :] + row[: place % 2]] for place in range(rows)]
    lines = str(Summary(sentences, columns, table, more=more)).split("\n")
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= WIDTH


def test_what_is_left_out_is_counted():
    rows = [[str(place)] for place in range(100)]
    summary = Summary(["one"], ["place"], rows, more=7)
    assert f"{100 - summary.room + 7} more" in str(summary)
    fitting = str(Summary(["one"], ["place"], rows[: LINES - 2]))
    assert len(fitting.split("\n")) == LINES
    assert "more" not in fitting
