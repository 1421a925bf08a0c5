"""Features of the actions of a log: from tables, files and frames."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusals import raises_code

from submax.evaluation.log import Log

ROWS = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "propensity": [0.5, 0.5, 0.5]}
SLOTS = {"action_title": ["A", "B"], "action_layout": ["wide", "wide"], "reward": [1, 0]}
FEATURES = {"A": {"price": 3.0, "genre": "rock"}, "B": {"price": 2.0, "genre": "jazz"}}
CSV = "action,price,genre\nA,3,rock\nB,2.0,jazz\n"


def described(features, rows=ROWS, **options):
    return Log.read(rows, action_features=features, **options).schema.menu.features


def written(folder, text, name="features.csv"):
    (folder / name).write_text(text)
    return folder / name


def test_tables_files_and_frames_say_the_same(tmp_path):
    frame = pd.DataFrame({"action": ["A", "B"], "price": [3, 2.0], "genre": ["rock", "jazz"]})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "features.parquet")
    path = written(tmp_path, CSV)
    for source in (FEATURES, path, str(path), tmp_path / "features.parquet", frame):
        assert described(source) == FEATURES
    assert Log.read(ROWS).schema.menu.features is None


def test_slots_have_features_of_their_own(tmp_path):
    text = "slot,choice,price,columns\ntitle,A,3,\ntitle,B,2,\nlayout,wide,,2\n"
    found = described(written(tmp_path, text), SLOTS)
    assert found == {
        "title": {"A": {"price": 3.0}, "B": {"price": 2.0}},
        "layout": {"wide": {"columns": 2.0}},
    }


def test_names_are_those_of_the_log(tmp_path):
    text = "action,price\n007,1\n8,2\n"
    rows = {"action": ["007", "8"], "reward": [1, 0]}
    assert described(written(tmp_path, text), rows) == {"007": {"price": 1.0}, "8": {"price": 2.0}}
    numbers = pd.DataFrame({"action": [0, 1], "price": [1.0, 2.0]})
    log = Log.read({"action": [0, 1, 1], "reward": [1, 0, 1]}, action_features=numbers)
    assert log.schema.menu.features == {"0": {"price": 1.0}, "1": {"price": 2.0}}


def test_a_catalogue_with_more_actions_is_used_with_a_note(tmp_path, mentioned):
    log = Log.read(ROWS, action_features=written(tmp_path, CSV + "Z,1,rock\n"))
    assert log.schema.menu.features == FEATURES
    assert mentioned(log.notes, "Z")
    # Once it is declared, an action that was never taken is described too.
    log = Log.read(ROWS, actions=["A", "B", "Z"], action_features=tmp_path / "features.csv")
    assert log.schema.menu.features["Z"] == {"price": 1.0, "genre": "rock"}


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("action,price\nA,3\n", ("B",)),
        ("action,price\nA,3\nB,\n", ("B", "price")),
        ("action,price\nA,3\nB,1\nA,2\n", ("row 3", "A")),
        ("action,price\nA,3\n,1\n", ("row 2",)),
        ("action,price\nA,3\nB,nan\n", ("row 2", "price")),
        ("action,price\nA,3\nB,2,1\n", ("row 2",)),
        ("name,price\nA,3\nB,2\n", ("action",)),
        ("action\nA\nB\n", ()),
        ("action,price\n", ()),
        ("slot,choice,price\ntitle,A,3\n", ()),
    ],
)
def test_a_bad_file_is_refused(text, facts, tmp_path, mentioned):
    with raises_code("invalid-input") as refused:
        described(written(tmp_path, text))
    assert mentioned([str(refused.value)], *facts)


def test_one_text_among_many_numbers_and_missing_actions_are_mistakes(tmp_path):
    names = [str(number) for number in range(20)]
    cells = [*map(str, range(19)), "dear"]
    text = "action,price\n" + "".join(f"{a},{b}\n" for a, b in zip(names, cells, strict=True))
    with raises_code("invalid-input", "action_features"):
        described(written(tmp_path, text), {"action": names, "reward": [1, 0] * 10})
    with raises_code("invalid-input"):
        Log.read(ROWS, actions=["A", "B"], action_features={"A": {"price": 1.0}})
