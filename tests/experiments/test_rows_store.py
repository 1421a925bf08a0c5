import math

import pytest

from submax.experiments.storing.rows_store import RowsStore

ROWS = [{"policy": "random", "value": 0.1 + 0.2}, {"policy": "random", "value": -1.5}]


def test_stored_cells_come_back_as_they_were(tmp_path):
    store = RowsStore(tmp_path / "cells")
    assert not store.finished("a")
    store.write("a", ROWS)
    assert store.finished("a")
    assert store.read("a") == ROWS
    assert [path.name for path in (tmp_path / "cells").iterdir()] == ["a.json"]


def test_numbers_that_are_not_known_come_back(tmp_path):
    store = RowsStore(tmp_path)
    store.write("a", [{"value": math.nan, "high": math.inf}])
    (row,) = store.read("a")
    assert math.isnan(row["value"])
    assert row["high"] == math.inf


@pytest.mark.parametrize("damage", ["cut", "empty", "no text"])
def test_damaged_cells_are_not_finished(tmp_path, damage):
    store = RowsStore(tmp_path)
    store.write("a", ROWS)
    path = tmp_path / "a.json"
    whole = path.read_bytes()
    path.write_bytes({"cut": whole[:-5], "empty": b"", "no text": b"\xff\xfe"}[damage])
    assert not store.finished("a")
