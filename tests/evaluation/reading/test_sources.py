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


def test_bad_rows_of_several_files_are_named_with_their_file(tmp_path, refused):
    folder = write_parts(tmp_path / "parts", "csv")
    second = folder / "part-1.csv"
    # Line 3 of the second file is malformed, and its line 4 has a wrong reward.
    lines = second.read_text().splitlines()
    lines.insert(2, "A,1")
    cells = lines[3].split(",")
    lines[3] = ",".join([cells[0], "often", *cells[2:]])
    second.write_text("\n".join(lines) + "\n")
    odd = ("reward", "line 4", "part-1.csv", "'often'")
    refused(folder, ("line 3", "part-1.csv"), odd, (2, 13, "3 files"))


HEADER = "id,time,action,reward,note\n"
NAMED = [
    # A quoted value of several lines, and lines without anything.
    ("\n\n" + HEADER + '\n1,5,A,1,"two\n\nlines"\n\n\n2,6,A,often,\n', ("line 10", "'often'")),
    (HEADER + '1,5,A,1,"a ""word""\nand, more"\n2,6,5" A,1,\n3,x,A,1,\n', ("line 5", "'x'")),
    (HEADER + '1,5,A,1, "two\nlines"\n2,6,A,\n3,7,A,often,\n', ("line 5", "'often'")),
    # Rows with too few and too many values, and spaces in an otherwise empty line.
    (HEADER + '\n1,5,A,1,"two\nlines"\n2,6\n3,7,A\n', ("line 5", "2 rows")),
    (HEADER + '1,5,A,1,"two\nlines"\n\n2,6,A,1,2,3\n3,6,A,often,\n', ("line 5", "1 row")),
    (HEADER + '1,5,A,1,"two\nlines"\n\n2,6,A,1,2,3\n3,6,A,often,\n', ("line 6", "'often'")),
    (HEADER + "1,5,A,1,\n  \n2,6,A,often,\n", ("line 4", "'often'")),
    # A repeated id.
    (HEADER + '\n7,5,A,1,"two\nlines"\n\n8,6,A,1,\n7,7,A,0,\n', ("line 7", "line 3", "'7'")),
]


@pytest.mark.parametrize(("text", "facts"), NAMED)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("compressed", [False, True])
def test_rows_of_a_csv_file_are_named_by_their_first_line(
    text, facts, end, compressed, tmp_path, mentioned, refused
):
    data = text.replace("\n", end).encode("utf-8-sig")
    path = tmp_path / "log.csv"
    path.write_bytes(gzip.compress(data) if compressed else data)
    refused(path, facts)
    assert mentioned(Log.read(path, skip_bad_rows=True).notes[:1], *facts)


def test_a_row_below_a_very_long_value_is_named_by_its_number(tmp_path, refused):
    path = tmp_path / "log.csv"
    path.write_text(f"{HEADER}1,5,A,x,\n2,6,A,1,{'x' * 200_000}\n3,x,A,1,\n")
    refused(path, ("reward", "line 2"), ("time", "row 3"))


def test_an_earlier_row_is_named_by_its_line_too(tmp_path, mentioned):
    path = tmp_path / "log.csv"
    path.write_text(HEADER + '1,5,A,1,"two\nlines"\n\n2,7\n3,8,A,1,\n4,7,A,0,\n')
    notes = Log.read(path, skip_bad_rows=True).notes
    assert mentioned(notes, "not in the order", "line 7")


@pytest.mark.parametrize("several", [False, True])
def test_rows_of_json_lines_are_named_by_their_line(several, tmp_path, refused):
    lines = [*json_text(ROW_DICTS[:4]).splitlines(), json.dumps({**ROW_DICTS[4], "reward": "x"})]
    bad = tmp_path / "part-2.jsonl"
    bad.write_text("\n" + "\n\n".join(lines) + "\n \n{broken\n")
    if several:
        (tmp_path / "part-1.jsonl.gz").write_bytes(gzip.compress(json_text(ROW_DICTS).encode()))
    files = [f"of {bad}"] * several
    facts = ("reward", "'x'", "line 10", *files), ("action", "line 12", *files, "JSON")
    refused(tmp_path if several else bad, *facts)


def test_rows_without_lines_are_named_by_their_number(tmp_path, refused):
    table = {**TABLE, "reward": ["x" if place == 4 else "1" for place in range(ROWS)]}
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    for source in (table, tmp_path / "log.parquet"):
        refused(source, ("reward", "row 5"))


def test_a_line_that_is_not_an_object_is_a_bad_row(tmp_path, refused):
    path = tmp_path / "log.jsonl"
    path.write_text(json_text(ROW_DICTS) + "[1, 2]\n{broken\n")
    refused(path)
    assert_same(Log.read(path, skip_bad_rows=True))
    assert_same(Log.read(ROW_DICTS))


def test_files_that_cannot_be_one_log_are_refused(tmp_path, refused):
    folder = write_parts(tmp_path / "parts")
    pq.write_table(pa.table({"action": ["A"], "reward": [1]}), folder / "part-3.parquet")
    archive = tmp_path / "log.csv.gz"
    archive.write_bytes(gzip.compress(csv_text(ROW_DICTS).encode())[:-12])
    (tmp_path / "empty").mkdir()
    for source in (folder, archive, tmp_path / "empty", f"{tmp_path}/nothing-*.csv"):
        refused(source, (source,))


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


def test_a_query_that_fails_is_refused(refused):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"action": ["a"], "reward": ["x"]}).lazy()
    refused(frame.with_columns(polars.col("reward").str.to_integer(strict=True)))
