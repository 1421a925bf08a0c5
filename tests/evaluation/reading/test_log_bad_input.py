import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from refusals import raises_code

from submax.core.errors import InputError
from submax.evaluation import Log
from submax.evaluation.reading.sources import csv_source, csv_text, source

HEADER = "action,reward,propensity,context_age"
GOOD = "A,1,0.5,3"


@pytest.fixture
def written(tmp_path):
    def write(*rows, header=HEADER, end="\n"):
        path = tmp_path / "log.csv"
        path.write_bytes(end.join([header, *rows, ""]).encode())
        return path

    return write


@pytest.fixture(params=["whole", "in small parts"])
def batches(request, monkeypatch):
    if request.param != "whole":
        monkeypatch.setattr(csv_source, "BLOCK_BYTES", 64)
        monkeypatch.setattr(csv_text, "BLOCK_BYTES", 7)
        monkeypatch.setattr(source, "BATCH_ROWS", 2)


def refused(log, *words, **options):
    with pytest.raises(InputError) as found:
        Log.read(log, **options)
    for word in words:
        assert word in str(found.value), str(found.value)


BAD = [
    ("A,1,0,3", "column 'propensity', row {row}: '0' is not above 0, as a propensity must be"),
    (
        "A,1,-0.1,3",
        "column 'propensity', row {row}: '-0.1' is not above 0, as a propensity must be",
    ),
    ("A,1,1.01,3", "column 'propensity', row {row}: '1.01' is above 1, as no propensity can be"),
    ("A,1,nan,3", "column 'propensity', row {row}: 'nan' is not a finite number"),
    ("A,1,half,3", "column 'propensity', row {row}: 'half' is not a finite number"),
    ("A,1,inf,3", "column 'propensity', row {row}: 'inf' is not a finite number"),
    ("A,,0.5,3", "column 'reward', row {row}: None is missing"),
    ("A,NaN,0.5,3", "column 'reward', row {row}: 'NaN' is not a finite number"),
    ("A,1e999,0.5,3", "column 'reward', row {row}: '1e999' is not a finite number"),
    ("A,1_0,0.5,3", "column 'reward', row {row}: '1_0' is not a finite number"),
    ("A,2,0.5,3", "column 'reward', row {row}: '2' is neither 0 nor 1"),
    ("Z,1,0.5,3", "column 'action', row {row}: 'Z' is not one of the declared actions"),
    (" A,1,0.5,3", "column 'action', row {row}: ' A' is not one of the declared actions"),
    (",1,0.5,3", "column 'action', row {row}: None is missing: an action is needed"),
    ("A,1,0.5,", "column 'context_age', row {row}: None is missing"),
    ("A,1,0.5,old", "column 'context_age', row {row}: 'old' is not a finite number"),
    ("A,1,0.5,1e31", "column 'context_age', row {row}: '1e31' is not from -1e+30 to 1e+30"),
    ("A,1,0.5,1e300", "column 'context_age', row {row}: '1e300' is not from"),
    ("A,1,0.5", "row {row} has another number of values than the header (1 line)"),
    ("A,1,0.5,3,9", "row {row} has another number of values than the header (1 line)"),
]
DECLARED = {"actions": ["A", "B"], "context": {"age": float}, "rewards": "binary"}


@pytest.mark.parametrize(("row", "sentence"), BAD, ids=[row for row, _ in BAD])
@pytest.mark.parametrize("before", [0, 1, 9])
def test_a_bad_row_is_named_and_can_be_skipped(row, sentence, before, written, batches):
    path = written(*[GOOD] * before, row, GOOD, GOOD)
    sentence = sentence.format(row=before + 1)
    refused(path, f"1 of {before + 3} rows of {path}", sentence, "--skip-bad-rows", **DECLARED)
    log = Log.read(path, skip_bad_rows=True, **DECLARED)
    assert len(log) == before + 2
    assert log.notes[0].startswith(f"1 bad rows were skipped: {sentence}")
    assert log.fingerprint == Log.read(written(*[GOOD] * (before + 2)), **DECLARED).fingerprint


def test_several_kinds_are_listed_together_with_the_count_of_each(written, batches):
    bad = ["Z,1,0.5,3", "Z,x,0.5,3", "A,1,0,3", "A,1", "A,1,0.5,3,3", "Z,1,2,3"]
    path = written(GOOD, *bad, GOOD)
    refused(
        path,
        "6 of 8 rows",
        "column 'action', row 2: 'Z' is not one of the declared actions (3 rows)",
        "column 'reward', row 3: 'x' is not a finite number (1 row)",
        "column 'propensity', row 4: '0' is not above 0, as a propensity must be (1 row)",
        "column 'propensity', row 7: '2' is above 1, as no propensity can be (1 row)",
        "row 5 has another number of values than the header (2 lines)",
        **DECLARED,
    )
    assert len(Log.read(path, skip_bad_rows=True, **DECLARED)) == 2


def test_rows_after_lines_that_are_none_have_their_own_number(written, batches):
    path = written("A,1", GOOD, "A", "A", GOOD, "", "", "A,1,0.5,3,3", GOOD, "A,x,0.5,3", GOOD)
    refused(path, "column 'reward', row 8: 'x'", "row 1 has another number", "(4 lines)")


def test_lines_with_nothing_in_them_are_no_rows(written, batches):
    path = written("", GOOD, "", "", "A,x,0.5,3", "", GOOD, "")
    refused(path, "1 of 3 rows", "column 'reward', row 2: 'x'")


def test_the_rows_of_repeats_and_of_times_are_those_of_the_file(written, batches):
    header = "id,action,reward,time"
    path = written("1,A,1,5", "1,A", "2,A,1,7", "1,A,0,8", "3,A,1,6", header=header)
    log = Log.read(path, skip_bad_rows=True)
    assert "row 4: the id occurred before, in row 1 (1 row)" in log.notes[0]
    assert "(row 5 is earlier than the row before" in log.notes[-1]
    assert len(log) == 3


def test_bad_rows_of_a_table_are_named_in_any_batch(batches):
    table = {"action": ["A"] * 7, "reward": [1.0] * 6 + [np.inf], "propensity": [0.5] * 5 + [0, 0]}
    refused(
        table,
        "2 of 7 rows of the table",
        "column 'propensity', row 6: 0.0 is not above 0, as a propensity must be (2 rows)",
        "column 'reward', row 7: inf is not a finite number (1 row)",
    )


@pytest.mark.parametrize(
    ("rewards", "reward"),
    [("counts", "1.5"), ("counts", "-1"), ({"kind": "discrete", "values": [1, 2]}, "3")],
)
def test_rewards_off_the_declared_scale_are_bad_rows(rewards, reward, written):
    path = written(GOOD, f"A,{reward},0.5,3")
    refused(path, f"column 'reward', row 2: '{reward}' is not a reward of", rewards=rewards)
    assert len(Log.read(path, rewards=rewards, skip_bad_rows=True)) == 1


def test_many_kinds_are_cut_short(written):
    fields = [f"context_{number}" for number in range(20)]
    rows = [",".join(["A", "1", *["1"] * 20])] * 200
    bad = ",".join(["A", "1", *["x"] * 20])
    path = written(*rows, bad, header=",".join(["action", "reward", *fields]))
    refused(path, "1 of 201 rows", "... and 8 other problems")


def test_where_all_rows_are_bad_that_is_the_error(written):
    path = written("Z,1,0.5,3", "A,1,0,3")
    refused(
        path,
        f"{path} has no rows that can be used; bad rows: 2, column 'action', row 1: 'Z' is not",
        "column 'propensity', row 2",
        skip_bad_rows=True,
        **DECLARED,
    )


@pytest.mark.parametrize("text", ["", "\n", "  \n\n", "\r\n"])
def test_an_empty_file_is_refused(text, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(text)
    refused(path, f"{str(path)!r} is empty")


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_header_without_rows_is_refused(end, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(HEADER + end)
    refused(path, str(path), "no rows")


def test_a_table_and_a_parquet_file_without_rows_are_refused(tmp_path):
    table = pa.table({"action": pa.array([], pa.string()), "reward": pa.array([], pa.float64())})
    parquet.write_table(table, tmp_path / "log.parquet")
    refused(table, "the table has no rows that can be used")
    refused(tmp_path / "log.parquet", "has no rows that can be used")


def test_what_is_no_file_is_refused(tmp_path):
    refused(tmp_path, "has no file of a log")
    refused(tmp_path / "nothing.csv", "there is no file")
    for other in (5, None, b"log.csv", [1, 2], {"action": 5}, {"action": "abc", "reward": [1]}):
        refused(other, "")


def test_a_text_that_is_called_parquet_is_refused(written):
    path = written(GOOD).rename(written().with_suffix(".parquet"))
    refused(path, "is not a Parquet file")


def test_a_parquet_file_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "log.parquet"
    parquet.write_table(pa.table({"action": ["A"] * 1000, "reward": [1.0] * 1000}), path)
    path.write_bytes(path.read_bytes()[:-100])
    refused(path, "cannot read", str(path))


def test_a_parquet_file_with_a_damaged_page_is_refused(tmp_path):
    path = tmp_path / "log.parquet"
    rng = np.random.default_rng(0)
    table = pa.table({"action": ["A"] * 1000, "reward": rng.random(1000)})
    parquet.write_table(table, path, use_dictionary=False, compression="gzip")
    data = bytearray(path.read_bytes())
    data[200:4000] = bytes(3800)
    path.write_bytes(data)
    refused(path, "cannot read", str(path))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (bytes(range(256)) * 9, ["log.csv", "line 1 contains a zero byte"]),
        (bytes(range(1, 256)) * 9, ["is not text in UTF-8, since line 2 contains the byte 0x80"]),
        (f"{HEADER}\n{GOOD}\né,1,0.5,3\n".encode("latin-1"), ["line 3 contains the byte 0xe9"]),
        (f"{HEADER}\n{GOOD}\né".encode("latin-1"), ["line 3 contains the byte 0xe9"]),
        (f"é{HEADER}\n{GOOD}\n".encode("latin-1"), ["line 1 contains the byte 0xe9"]),
        (f"{HEADER}\n{GOOD}\nA,é\n".encode("latin-1"), ["line 3 contains the byte 0xe9"]),
        (f"{HEADER}\n{GOOD}\n".encode("utf-16"), ["line 1 contains a zero byte"]),
        (f"{HEADER}\n{GOOD}\n".encode("utf-16-le"), ["line 1 contains a zero byte"]),
        (f"{HEADER}\n{GOOD}\n".encode() + "ü".encode()[:1], ["line 3 contains the byte 0xc3"]),
    ],
    ids=["zeros", "bytes", "latin", "cut", "header", "short", "utf-16", "utf-16-le", "half"],
)
def test_what_is_no_text_is_refused_with_its_line(data, words, tmp_path, batches):
    path = tmp_path / "log.csv"
    path.write_bytes(data)
    refused(path, *words, skip_bad_rows=True)


def test_letters_of_several_bytes_are_read_in_any_parts(written, batches):
    log = Log.read(written(*["é🙂日,1,0.5,3"] * 9))
    assert log.schema.menu.declaration == ["é🙂日"]


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([GOOD, 'A,1,0.5,"3', GOOD, GOOD], 3),
        ([GOOD, '"A,1,0.5,3', GOOD], 3),
        (['"A",1,0.5,"3"', '"A""",1,0.5,"3', GOOD], 3),
        ([GOOD, '"A\n",1,0.5,"', GOOD], 4),
    ],
)
def test_a_quote_that_is_never_closed_is_refused_with_its_line(rows, line, written, batches):
    refused(written(*rows), f"a quote in line {line} that is never closed", skip_bad_rows=True)


def test_a_quote_inside_a_value_is_a_letter(written, batches):
    log = Log.read(written('5" pipe,1,0.5,3', '"6"" pipe",0,0.5,3'))
    assert log.schema.menu.declaration == ['5" pipe', '6" pipe']


def test_quoted_names_may_have_commas_and_remarks_several_lines(written, batches):
    rows = ['"A, B",1,0.5,3,"one\ntwo, three"', 'C,0,0.5,3,"four\n\nfive"', "C,x,0.5,3,", "C,0"]
    path = written(*rows, header=f"{HEADER},remark")
    refused(path, "row 3: 'x'", "row 4 has another number of values")
    log = Log.read(path, skip_bad_rows=True)
    assert log.schema.menu.declaration == ["A, B", "C"]
    assert log.notes[-1] == "columns that were not used: remark"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_line_ends_and_the_mark_of_utf8_make_no_difference(start, end, written):
    log = Log.read(written(GOOD, "B,0,0.25,4", header=start + HEADER, end=end))
    assert log.fingerprint == Log.read(written(GOOD, "B,0,0.25,4")).fingerprint


@pytest.mark.parametrize(
    ("sign", "word"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")], ids=repr
)
def test_other_separators_are_named(sign, word, written):
    rows = [row.replace(",", sign) for row in (HEADER, GOOD)]
    path = written(rows[1], header=rows[0])
    refused(path, f"are separated by {word}", "by commas", f"sep={sign!r}")
    assert len(Log.read(pd.read_csv(path, sep=sign))) == 1


def test_a_column_that_is_there_twice_is_refused(written):
    refused(written(GOOD + ",1", header=f"{HEADER},reward"), "2 columns called 'reward'")
    twice = pa.table([["A"], [1], [0]], names=["action", "reward", "reward"])
    refused(twice, "2 columns called 'reward'")
    refused(pd.DataFrame([["A", 1, 0]], columns=["action", "reward", "reward"]), "reward")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"action": ["A"], "reward": [1, 0]}, ["length"]),
        ({"action": ["A"], "reward": np.ones((1, 2))}, ["'reward'", "one value for each row"]),
        ({"action": [["A"]], "reward": [1]}, ["'action', row 1: ['A'] is not a name"]),
        ({"action": [{"x": 1}], "reward": [1]}, ["'action', row 1: {'x': 1} is not a name"]),
        ({"action": ["A"], "reward": [[1]]}, ["'reward', row 1: [1] is not a finite number"]),
        ({"action": ["x" * 201], "reward": [1]}, ["'action', row 1", "is not a name of 1 to 200"]),
        ({"action": ["A\nB"], "reward": [1]}, ["'action', row 1: 'A\\nB' is not a name"]),
        ({"action": [None], "reward": [1]}, ["'action', row 1: None is missing"]),
        ({"action": ["A"], "reward": [None]}, ["'reward', row 1: None is missing"]),
        ({"action": ["A"], "reward": [1], "context_x": [["a"]]}, ["'context_x', row 1: ['a']"]),
        (
            {"action": ["A"], "reward": [1], "context_x": [""]},
            ["'context_x', row 1: '' is missing"],
        ),
        ({"act": ["A"], "reward": [1]}, ["no column is called 'action'", "There are: act, reward"]),
        (
            {"action": ["A"], "rew": [1]},
            ["no column is called 'reward'", "columns={'reward': NAME"],
        ),
    ],
)
def test_tables_that_make_no_sense_are_refused(table, words):
    refused(table, *words)


def test_a_column_of_too_many_names_is_refused_with_what_to_do():
    rows = 10_001
    names = [f"a{number}" for number in range(rows)]
    refused({"action": names, "reward": [1] * rows}, "'action'", "10000", "interval")
    refused(
        {"action": ["A"] * rows, "reward": [1] * rows, "context_x": names},
        "'context_x'",
        "1000 different values",
    )


def test_a_category_that_is_not_declared_is_a_bad_row(written):
    path = written("A,1,fr", "A,1,", "A,0,xx", header="action,reward,context_country")
    refused(
        path,
        "column 'context_country', row 2: None is missing, and no default is declared (1 row)",
        "column 'context_country', row 3: 'xx' is not one of the declared categories (1 row)",
        context={"country": ["fr", "de"]},
    )
    assert len(Log.read(path, context={"country": ["fr", "de"]}, skip_bad_rows=True)) == 1


def test_a_column_of_numbers_with_a_few_mistakes_stays_one_of_numbers(written):
    path = written(*[f"A,1,0.5, {age} " for age in range(20)], "A,1,0.5,n/a")
    refused(path, "column 'context_age', row 21: 'n/a' is not a finite number")
    log = Log.read(path, skip_bad_rows=True)
    assert log.context[:, 0].tolist() == list(range(20))


def test_a_table_without_rows_is_refused_with_what_to_do():
    with raises_code("invalid-input"):
        Log.read({"action": [], "reward": []})
