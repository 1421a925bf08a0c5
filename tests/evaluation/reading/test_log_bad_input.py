"""What is wrong in a log is reported with the line or row, the column and the count."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from refusals import raises_code

from submax.evaluation import Log

HEADER = "action,reward,propensity,context_age"
GOOD = "A,1,0.5,3"
DECLARED = {"actions": ["A", "B"], "context": {"age": float}, "rewards": "binary"}


@pytest.fixture
def written(tmp_path):
    def write(*rows, header=HEADER, end="\n"):
        path = tmp_path / "log.csv"
        path.write_bytes(end.join([header, *rows, ""]).encode())
        return path

    return write


BAD = [
    ("A,1,0,3", "propensity", "'0'"),
    ("A,1,1.01,3", "propensity", "'1.01'"),
    ("A,1,nan,3", "propensity", "'nan'"),
    ("A,,0.5,3", "reward"),
    ("A,NaN,0.5,3", "reward", "'NaN'"),
    ("A,1_0,0.5,3", "reward", "'1_0'"),
    ("A,2,0.5,3", "reward", "'2'"),
    ("Z,1,0.5,3", "action", "'Z'"),
    (",1,0.5,3", "action"),
    ("A,1,0.5,", "context_age"),
    ("A,1,0.5,old", "context_age", "'old'"),
    ("A,1,0.5,1e31", "context_age", "'1e31'"),
    ("A,1,0.5",),
    ("A,1,0.5,3,9",),
]


@pytest.mark.parametrize(("row", "facts"), [(row, facts) for row, *facts in BAD])
def test_a_bad_row_is_named_and_can_be_skipped(row, facts, written, refused, mentioned):
    path = written(*[GOOD] * 4, row, GOOD, GOOD)
    refused(path, (1, 7, path), ("line 6", *facts), **DECLARED)
    log = Log.read(path, skip_bad_rows=True, **DECLARED)
    assert len(log) == 6
    assert mentioned(log.notes[:1], 1, "line 6", *facts)
    assert log.fingerprint == Log.read(written(*[GOOD] * 6), **DECLARED).fingerprint


def test_several_kinds_are_listed_together_with_the_count_of_each(written, refused):
    bad = ["Z,1,0.5,3", "Z,x,0.5,3", "A,1,0,3", "A,1", "A,1,0.5,3,3", "Z,1,2,3"]
    path = written(GOOD, *bad, GOOD)
    refused(
        path,
        (6, 8),
        ("action", "line 3", "'Z'", "3 rows"),
        ("reward", "line 4", "'x'", "1 row"),
        ("propensity", "line 5", "'0'", "1 row"),
        ("propensity", "line 8", "'2'", "1 row"),
        ("line 6", "2 rows"),
        **DECLARED,
    )
    assert len(Log.read(path, skip_bad_rows=True, **DECLARED)) == 2


def test_rows_are_named_by_the_lines_of_an_editor(written, refused, mentioned):
    path = written("A,1", GOOD, "A", "A", GOOD, "A,1,0.5,3,3", GOOD, "A,x,0.5,3", GOOD)
    refused(path, (5, 9), ("reward", "line 9", "'x'"), ("line 2", "4 rows"))
    header = "id,action,reward,time"
    path = written("1,A,1,5", "1,A", "2,A,1,7", "1,A,0,8", "3,A,1,6", header=header)
    log = Log.read(path, skip_bad_rows=True)
    assert mentioned(log.notes[:1], "line 5", "line 2")
    assert mentioned(log.notes[-1:], "line 6")
    assert len(log) == 3


@pytest.mark.parametrize(
    ("rewards", "reward"),
    [("counts", "1.5"), ("counts", "-1"), ({"kind": "discrete", "values": [1, 2]}, "3")],
)
def test_rewards_off_the_declared_scale_are_bad_rows(rewards, reward, written, refused):
    path = written(GOOD, f"A,{reward},0.5,3")
    refused(path, ("reward", "line 3", f"'{reward}'"), rewards=rewards)
    assert len(Log.read(path, rewards=rewards, skip_bad_rows=True)) == 1


def test_categories_and_numbers_are_known_from_most_rows(written, refused):
    countries = {"country": ["fr", "de"]}
    path = written("A,1,fr", "A,1,", "A,0,xx", header="action,reward,context_country")
    facts = [("context_country", "line 3"), ("context_country", "line 4", "'xx'")]
    refused(path, *facts, context=countries)
    assert len(Log.read(path, context=countries, skip_bad_rows=True)) == 1
    path = written(*[f"A,1,0.5, {age} " for age in range(20)], "A,1,0.5,n/a")
    refused(path, ("context_age", "line 22", "'n/a'"))
    log = Log.read(path, skip_bad_rows=True)
    assert log.context[:, 0].tolist() == list(range(20))


def test_many_problems_are_cut_short_and_all_bad_rows_are_an_error(written, refused):
    fields = [f"context_{number}" for number in range(20)]
    rows = [",".join(["A", "1", *["1"] * 20])] * 200
    bad = ",".join(["A", "1", *["x"] * 20])
    path = written(*rows, bad, header=",".join(["action", "reward", *fields]))
    refused(path, (1, 201), (8,))
    path = written("Z,1,0.5,3", "A,1,0,3")
    refused(path, (path, 2), ("action", "line 2"), skip_bad_rows=True, **DECLARED)


# Files


@pytest.mark.parametrize("text", ["", "  \n\n", HEADER, HEADER + "\r\n"], ids=repr)
def test_an_empty_file_is_refused(text, tmp_path, refused):
    path = tmp_path / "log.csv"
    path.write_text(text)
    refused(path, (path,))


def test_tables_and_parquet_files_without_rows_are_refused(tmp_path, refused):
    table = pa.table({"action": pa.array([], pa.string()), "reward": pa.array([], pa.float64())})
    parquet.write_table(table, tmp_path / "log.parquet")
    refused(table)
    refused({"action": [], "reward": []})
    refused(tmp_path / "log.parquet", (tmp_path / "log.parquet",))


def test_what_is_no_file_is_refused(tmp_path, written, refused):
    for path in (tmp_path, tmp_path / "nothing.csv"):
        refused(path, (path,))
    for other in (5, None, b"log.csv", [1, 2], {"action": 5}, {"action": "abc", "reward": [1]}):
        refused(other)
    path = written(GOOD).rename(written().with_suffix(".parquet"))
    refused(path, (path,))


@pytest.mark.parametrize("damage", ["cut off", "page"])
def test_a_damaged_parquet_file_is_refused(damage, tmp_path, refused):
    path = tmp_path / "log.parquet"
    rng = np.random.default_rng(0)
    table = pa.table({"action": ["A"] * 1000, "reward": rng.random(1000)})
    parquet.write_table(table, path, use_dictionary=False, compression="gzip")
    data = bytearray(path.read_bytes())
    if damage == "page":
        data[200:4000] = bytes(3800)
    path.write_bytes(data if damage == "page" else data[:-100])
    refused(path, (path,))


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (bytes(range(1, 256)) * 9, 2),
        (f"{HEADER}\n{GOOD}\né,1,0.5,3\n".encode("latin-1"), 3),
        (f"{HEADER}\n{GOOD}\né".encode("latin-1"), 3),
        (f"é{HEADER}\n{GOOD}\n".encode("latin-1"), 1),
        (f"{HEADER}\n{GOOD}\n".encode("utf-16"), 1),
        ((f"{HEADER}\n" + f"{GOOD}\n" * 150_000).encode() + b"\xe9,1,0.5,3\n", 150_002),
        (f'{HEADER}\n{GOOD}\nA,1,0.5,"3\n{GOOD}\n{GOOD}\n'.encode(), 3),
        (f'{HEADER}\n{GOOD}\n"A\n",1,0.5,"\n{GOOD}\n'.encode(), 3),
        (f'{HEADER}\n"A\nB",1,0.5,3\n\nA,1,0.5,"3\n{GOOD}\n'.encode(), 5),
    ],
    ids=["bytes", "latin", "cut", "header", "utf-16", "late", "open quote", "last quote", "lines"],
)
def test_what_is_no_text_and_an_open_quote_are_refused_with_the_line(data, line, tmp_path, refused):
    path = tmp_path / "log.csv"
    path.write_bytes(data)
    refused(path, (f"line {line}", path), skip_bad_rows=True)
    path.write_bytes(f"{HEADER}\n{GOOD}\n".encode("utf-16-le"))
    refused(path, (path,))


def test_quotes_commas_and_letters_of_several_bytes_are_read(written, refused, mentioned):
    log = Log.read(written(*["é🙂日,1,0.5,3"] * 9, '5" pipe,1,0.5,3', '"6"" pipe",0,0.5,3'))
    assert log.schema.menu.declaration == ['5" pipe', '6" pipe', "é🙂日"]
    rows = ['"A, B",1,0.5,3,"one\ntwo, three"', 'C,0,0.5,3,"four\n\nfive"', "C,x,0.5,3,", "C,0"]
    path = written(*rows, header=f"{HEADER},remark")
    refused(path, ("line 7", "'x'"), ("line 8",))
    log = Log.read(path, skip_bad_rows=True)
    assert log.schema.menu.declaration == ["A, B", "C"]
    assert mentioned(log.notes[-1:], "remark")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_line_ends_and_the_mark_of_utf8_make_no_difference(start, end, written):
    log = Log.read(written(GOOD, "B,0,0.25,4", header=start + HEADER, end=end))
    assert log.fingerprint == Log.read(written(GOOD, "B,0,0.25,4")).fingerprint


@pytest.mark.parametrize(
    ("table", "facts"),
    [
        (pa.table([["A"], [1], [0]], names=["action", "reward", "reward"]), ("reward",)),
        (pd.DataFrame([["A", 1, 0]], columns=["action", "reward", "reward"]), ("reward",)),
        ({"action": ["A"], "reward": [1, 0]}, ()),
        ({"action": ["A"], "reward": np.ones((1, 2))}, ("reward",)),
        ({"action": [["A"]], "reward": [1]}, ("action", "row 1")),
        ({"action": [{"x": 1}], "reward": [1]}, ("action", "row 1")),
        ({"action": ["A"], "reward": [[1]]}, ("reward", "row 1")),
        ({"action": ["x" * 201], "reward": [1]}, ("action", "row 1")),
        ({"action": ["A\nB"], "reward": [1]}, ("action", "row 1")),
        ({"action": ["A"], "reward": [1], "context_x": [["a"]]}, ("context_x", "row 1")),
        ({"action": ["A"], "reward": [1], "context_x": [""]}, ("context_x", "row 1")),
    ],
)
def test_tables_that_make_no_sense_are_refused(table, facts, refused):
    refused(table, facts)


def test_a_column_of_too_many_names_is_refused():
    names = [f"a{number}" for number in range(10_001)]
    with raises_code("invalid-input", "action"):
        Log.read({"action": names, "reward": [1] * len(names)})
    with raises_code("invalid-input", "context_x"):
        Log.read({"action": ["A"] * 2000, "reward": [1] * 2000, "context_x": names[:2000]})


# What was met in files of other people


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_separators_are_recognized_and_semicolons_go_with_decimal_commas(sign, tmp_path):
    path, half = tmp_path / "log.csv", "0,5" if sign == ";" else "0.5"
    rows = ["action;reward;propensity;context_note", f'A;1;{half};"1,2,3"', f"B;0; {half};x"]
    path.write_text("\n".join(rows).replace(";", sign))
    log = Log.read(path)
    assert (log.reward.tolist(), log.propensity.tolist()) == ([1, 0], [0.5, 0.5])
    assert log.schema.context.fields[0].values == ("1,2,3", "x")


def test_separators_and_decimal_signs_can_be_given(written):
    header = 'action,reward,propensity,"a;b;c;d;e"'
    path = written('A,1,"0,5",x', 'B,0,"0,5",x', header=header)
    log = Log.read(path, separator=",", decimal=",")
    assert log.propensity.tolist() == [0.5, 0.5]
    for wrong in ({"separator": "ab"}, {"decimal": ";"}):
        with raises_code("invalid-input", next(iter(wrong))):
            Log.read(path, **wrong)


@pytest.mark.parametrize(
    ("value", "hint"), [('"0,5"', "--decimal"), ("50 %", "100"), ("2026-01-02", "time=propensity")]
)
def test_what_is_not_a_number_is_recognized(value, hint, written, refused):
    path = written("A,1,0.5", f"B,0,{value}", header="action,reward,propensity")
    refused(path, ("line 3",), (hint,))


def test_similar_names_and_unused_columns_are_remarked(written, mentioned):
    notes = Log.read(written("A,yes,0.5", "A ,no,0.5", header="action,reward,Propensity")).notes
    assert mentioned(notes, "Propensity")
    assert mentioned(notes, "yes")
    assert any("'A '" in note for note in notes)
    path = written('RED,1,"1,5",€ 3', 'red,0,"2,5",€ 4', header="action,reward,context_x,context_y")
    notes = Log.read(path).notes
    assert mentioned(notes, "'RED'", "'red'")
    assert mentioned(notes, "'context_x'", "decimal=','")
    assert mentioned(notes, "'context_y'", "currency")
