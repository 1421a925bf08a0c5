"""Files of other kinds than one plain CSV or Parquet file, folders, and patterns of columns."""

import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import raises_code

from submax.evaluation.log import Log

ROWS = 12
TABLE = {
    "action": ["A", "B", "C"] * 4,
    "reward": [0, 1] * 6,
    "propensity": [0.5, 0.25, 0.25] * 4,
    "context_age": list(range(20, 20 + ROWS)),
    "context_country": ["fr", "de"] * 6,
}
ROW_DICTS = [dict(zip(TABLE, values, strict=True)) for values in zip(*TABLE.values(), strict=True)]


def csv_text(rows):
    lines = [",".join(TABLE), *(",".join(str(value) for value in row.values()) for row in rows)]
    return "\n".join(lines) + "\n"


def json_text(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def nested_text(rows):
    """The context as an object of its own, and an empty line."""
    lines = []
    for row in rows:
        inner = {"age": row["context_age"], "country": row["context_country"]}
        outer = {key: value for key, value in row.items() if not key.startswith("context")}
        lines.append(json.dumps({**outer, "context": inner}))
    return "\n\n".join(lines)


def assert_same(log):
    expected = Log.read(TABLE)
    assert log.schema == expected.schema
    for name in ("context", "action", "reward", "propensity"):
        np.testing.assert_array_equal(getattr(log, name), getattr(expected, name))


@pytest.mark.parametrize("text", [csv_text, json_text, nested_text])
@pytest.mark.parametrize("compressed", [False, True])
def test_text_is_recognized_by_its_content_compressed_or_not(text, compressed, tmp_path):
    data = text(ROW_DICTS).encode()
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(data) if compressed else data)
    assert_same(Log.read(path))


def write_parts(folder, ending="parquet"):
    folder.mkdir(exist_ok=True)
    for number in range(3):
        part = ROW_DICTS[4 * number : 4 * number + 4]
        path = folder / f"part-{number}.{ending}"
        if ending == "parquet":
            pq.write_table(pa.Table.from_pylist(part), path)
        else:
            path.write_text(csv_text(part))
    (folder / "_SUCCESS").write_text("")
    (folder / "readme.txt").write_text("not a log")
    return folder


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_folder_and_a_pattern_are_one_log_in_the_order_of_the_paths(ending, tmp_path):
    folder = write_parts(tmp_path / "parts", ending)
    assert_same(Log.read(folder))
    assert_same(Log.read(f"{folder}/part-*.{ending}"))
    assert_same(Log.read(str(tmp_path / f"**/*.{ending}")))


def test_bad_rows_of_several_files_are_named_with_their_file(tmp_path, mentioned):
    folder = write_parts(tmp_path / "parts", "csv")
    second = folder / "part-1.csv"
    # Row 2 of the second file is malformed, and its row 3 has a wrong reward.
    lines = second.read_text().splitlines()
    lines.insert(2, "A,1")
    cells = lines[3].split(",")
    lines[3] = ",".join([cells[0], "often", *cells[2:]])
    second.write_text("\n".join(lines) + "\n")
    with raises_code("invalid-input") as refused:
        Log.read(folder)
    for facts in (
        ("row 2", "part-1.csv"),
        ("reward", "row 3", "part-1.csv", "'often'"),
        (2, 13, "3 files"),
    ):
        assert mentioned([str(refused.value)], *facts)


def test_a_line_that_is_not_an_object_is_a_bad_row(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text(json_text(ROW_DICTS) + "[1, 2]\n{broken\n")
    with raises_code("invalid-input"):
        Log.read(path)
    assert_same(Log.read(path, skip_bad_rows=True))


def test_files_that_cannot_be_one_log_are_refused(tmp_path):
    folder = write_parts(tmp_path / "parts")
    pq.write_table(pa.table({"action": ["A"], "reward": [1]}), folder / "part-3.parquet")
    archive = tmp_path / "log.csv.gz"
    archive.write_bytes(gzip.compress(csv_text(ROW_DICTS).encode())[:-12])
    (tmp_path / "empty").mkdir()
    for source in (folder, archive, tmp_path / "empty", f"{tmp_path}/nothing-*.csv"):
        with raises_code("invalid-input") as refused:
            Log.read(source)
        assert str(source) in str(refused.value)


def wide_table():
    many = {f"affinity_{number:02d}": [number * 1.0] * ROWS for number in range(80)}
    return {"action": TABLE["action"], "reward": TABLE["reward"], **many}


def test_columns_are_given_by_a_pattern_and_notes_are_short():
    log = Log.read(wide_table(), columns={"context": ["affinity_*"]})
    assert len(log.schema.context.names) == 80
    assert sum(map(len, Log.read(wide_table()).notes)) < 200
    with raises_code("invalid-input", "context"):
        Log.read(wide_table(), columns={"context": ["afinity_*"]})
    # A column whose name has a star is not a pattern.
    log = Log.read({**TABLE, "context_*": range(12)}, columns={"context": ["context_*"]})
    assert log.schema.context.names == ("context_*",)


@pytest.mark.parametrize("kind", ["polars", "duckdb"])
def test_of_a_query_only_the_columns_of_the_log_are_computed(kind):
    table = {"action": ["a", "b"] * 5, "reward": [1, 0] * 5, "propensity": [0.5] * 10}
    numbers = list(range(10))
    if kind == "polars":
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame({**table, "context_x": numbers, "other": ["x"] * 10}).lazy()
        query = frame.with_columns(polars.col("other").alias("more"))
    else:
        duckdb = pytest.importorskip("duckdb")
        arrow = pa.table({**table, "context_x": numbers, 'odd "name"': ["x"] * 10})
        query = duckdb.connect().from_arrow(arrow)
    log = Log.read(query)
    assert (len(log), log.schema.context.names) == (10, ("x",))
    assert log.context[:, 0].tolist() == numbers
    assert log.reward.tolist() == table["reward"]


def test_a_query_that_fails_is_refused():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"action": ["a"], "reward": ["x"]}).lazy()
    with raises_code("invalid-input"):
        Log.read(frame.with_columns(polars.col("reward").str.to_integer(strict=True)))
