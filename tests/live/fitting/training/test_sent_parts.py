"""The training process keeps parts of rows up to a limit; the oldest ones are forgotten."""

import numpy as np

from submax.live.fitting.training.sent_parts import SentParts
from submax.live.log.rows.lazy_rows import RowPart
from submax.schema.columns import Columns

ROWS = Columns(np.zeros((4, 9), np.float32), np.zeros((4, 1)), np.zeros(4), np.zeros(4))


def test_parts_are_sent_once_and_the_ones_used_least_recently_are_forgotten():
    sent, forgotten = SentParts(most=3 * 40), []

    def job(*keys):
        """Which parts are sent for a job with these parts."""
        parts = [sent.job_part(RowPart.of(ROWS, key)) for key in keys]
        forgotten.append(sent.surplus(set(keys)))
        for part in parts:
            if part.sent:
                sent.note(part.key, ROWS)
        return [part.key for part in parts if part.sent]

    assert job("a", "b", None) == ["a", "b", None]
    assert job("b", "c") == ["c"]
    assert job("a", "d") == ["d"]
    # Four parts are kept now, one too many: b was not used for longest.
    assert job("a", "d") == []
    assert forgotten == [(), (), (), ("b",)]
    assert job("b") == ["b"]
    # The parts of one job are kept even if they are too many.
    assert job("e", "f", "g", "h") == ["e", "f", "g", "h"]
    assert job("e", "f", "g", "h") == []
    sent.clear()
    assert job("e") == ["e"]


def test_a_range_of_a_part_names_the_whole_and_a_part_without_a_key_is_cut():
    sent = SentParts()
    assert sent.job_part(RowPart.of(ROWS, "a").between(1, 3)) == ("a", 1, 3, True)
    assert sent.job_part(RowPart.of(ROWS, "a").between(1, 4).between(1, 2)) == ("a", 2, 3, False)
    assert sent.job_part(RowPart.of(ROWS).between(1, 3)) == (None, 0, 2, True)
