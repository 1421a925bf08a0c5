"""The tables of a result folder."""

import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import raises_code

from submax.simulation.results import ResultTable, write_table


@pytest.fixture
def parts(seed):
    rng = np.random.default_rng(seed)
    return [
        {
            "arms": arms,
            "beta": beta,
            "shape": "2x3",
            "sparse": False,
            "policy": name,
            "replica": np.arange(3),
            "regret": np.append(rng.normal(size=2), np.nan),
        }
        for arms, beta in ((3, 1), (5, 0.5))
        for name in ("ucb1", "7")
    ]


def test_rows_are_found_by_labels_and_by_policy(parts, tmp_path):
    write_table(tmp_path, "finals", parts)
    table = ResultTable.read(tmp_path, "finals")
    assert table.labels == ["arms", "beta", "shape", "sparse"]
    assert table.distinct("arms", "beta") == [(3, 1.0), (5, 0.5)]
    chosen = table.where({"arms": 5, "sparse": False}).by_policy()
    assert list(chosen) == ["ucb1", "7"]
    np.testing.assert_array_equal(chosen["7"]["regret"], parts[3]["regret"])
    assert [len(rows["arms"]) for rows in table.groups("arms", "policy").values()] == [3] * 4


def test_a_parquet_file_without_pyarrow_and_a_missing_file_are_refused(
    parts, tmp_path, monkeypatch
):
    with raises_code("invalid-input"):
        ResultTable.read(tmp_path, "finals")
    write_table(tmp_path, "finals", parts)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with raises_code("missing-extra"):
        ResultTable.read(tmp_path, "finals")


@pytest.mark.parametrize(
    "values",
    [
        *(3, -1.5, True, "täglich", None, np.int64(4), np.float64("nan")),
        np.array([1.0, np.nan]),
        np.array([1, 2], np.uint8),
        np.array(["2026-11-01", "2026-11-02"], "datetime64[D]"),
        np.array(["a", None], object),
        np.array([True, False]),
        np.arange(8.0)[::4],
    ],
    ids=repr,
)
def test_columns_have_the_types_and_values_of_pyarrow(values, tmp_path):
    write_table(tmp_path, "finals", [{"step": np.arange(2), "value": values}])
    column = pq.read_table(tmp_path / "finals.parquet")["value"]
    many = isinstance(values, np.ndarray)
    expected = pa.array(values) if many else pa.repeat(pa.scalar(values), 2)
    assert column.type == expected.type
    # As texts, since no number is equal to NaN.
    assert repr(column.to_pylist()) == repr(expected.to_pylist())


@pytest.mark.parametrize("values", [np.arange(2), np.ones((3, 2)), np.ones(4, np.bool_)], ids=repr)
def test_columns_that_do_not_fit_the_rows_are_refused_and_nothing_is_left(values, tmp_path):
    with pytest.raises(pa.ArrowInvalid):
        write_table(tmp_path, "finals", [{"step": np.arange(3), "regret": values}])
    assert list(tmp_path.iterdir()) == []


def test_a_part_without_rows_changes_no_type(tmp_path):
    parts = [{"arms": arms, "is_new": True, "regret": np.ones(arms)} for arms in (2, 0)]
    write_table(tmp_path, "finals", parts)
    table = ResultTable.read(tmp_path, "finals")
    assert table["arms"].tolist() == [2, 2]
    assert [table[name].dtype for name in table.names] == [np.int64, np.bool_, np.float64]
