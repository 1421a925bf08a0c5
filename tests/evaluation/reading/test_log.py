import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from refusals import raises_code

import submax
from submax.core.errors import InputError
from submax.evaluation import Log, learn
from submax.schema.context_schema import ContextSchema

ACTION = ["B", "A", "C", "A", "B"]
REWARD = [1.0, 0.0, 1.0, 1.0, 0.0]
PROPENSITY = [0.25, 0.5, 0.125, 0.5, 0.25]
AGE = [31.5, 40.0, -2.25, 18.0, 77.0]
COUNTRY = ["fr", "de", "fr", "it", "de"]
TABLE = {
    "action": ACTION,
    "reward": REWARD,
    "propensity": PROPENSITY,
    "context_age": AGE,
    "context_country": COUNTRY,
}


def as_csv(folder):
    path = folder / "log.csv"
    csv.write_csv(pa.table(TABLE), path)
    return path


def as_parquet(folder):
    path = folder / "log.parquet"
    parquet.write_table(pa.table(TABLE), path)
    return path


def as_parquet_called_csv(folder):
    return as_parquet(folder).rename(folder / "log.csv")


def as_text_of_path(folder):
    return str(as_csv(folder))


def as_small_chunks(folder):
    parts = [pa.table(TABLE).slice(first, 1) for first in range(len(ACTION))]
    return pa.concat_tables(parts)


def as_categorical(folder):
    return pd.DataFrame(TABLE).astype({"action": "category", "context_country": "category"})


def as_wide_types(folder):
    table = pa.table(TABLE)
    types = [pa.large_string() if one.type == pa.string() else one.type for one in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))


@pytest.mark.parametrize(
    "form",
    [
        as_csv,
        as_parquet,
        as_parquet_called_csv,
        as_text_of_path,
        as_small_chunks,
        as_categorical,
        as_wide_types,
        lambda folder: TABLE,
        lambda folder: pa.table(TABLE),
        lambda folder: pd.DataFrame(TABLE),
        lambda folder: pd.DataFrame(TABLE)[::-1][::-1],
        lambda folder: pd.DataFrame(TABLE, index=list("vwxyz")),
        lambda folder: {name: np.array(column) for name, column in TABLE.items()},
    ],
    ids=lambda form: form.__name__,
)
def test_the_same_rows_in_any_form_are_the_same_log(form, tmp_path):
    log = Log.read(form(tmp_path))
    assert log.fingerprint == Log.read(TABLE).fingerprint
    assert log.notes == ()
    assert [log.schema.menu.action(row) for row in log.action] == ACTION
    assert log.reward.tolist() == REWARD
    assert log.propensity.tolist() == PROPENSITY
    assert log.context[:, 0].tolist() == AGE
    countries = log.schema.context.fields[1].values
    assert countries == ("de", "fr", "it")
    assert [countries[int(place)] for place in log.context[:, 1]] == COUNTRY
    assert log.eligible_set.tolist() == [0] * 5
    assert log.eligible_sets == (((0, 1, 2),),)
    assert not log.estimated.any()


def test_arrays_and_the_feedback_of_obp_are_the_same_log_as_a_table():
    rng = np.random.default_rng(0)
    action, context = rng.integers(4, size=30), rng.normal(size=(30, 2)).astype(np.float32)
    reward, propensity = rng.integers(2, size=30), rng.uniform(0.1, 1.0, 30)
    table = {"action": action, "reward": reward, "propensity": propensity}
    table |= {"context_x0": context[:, 0], "context_x1": context[:, 1]}
    arrays = Log.from_arrays(action, reward, propensity=propensity, context=context)
    feedback = {
        "n_rounds": 30,
        "n_actions": 4,
        "context": context,
        "action_context": np.eye(4),
        "action": action,
        "position": None,
        "reward": reward,
        "expected_reward": rng.random((30, 4)),
        "pi_b": rng.random((30, 4, 1)),
        "pscore": propensity,
    }
    wanted = Log.read(table).fingerprint
    assert arrays.fingerprint == wanted
    assert Log.from_obp(feedback).fingerprint == wanted
    assert Log.from_obp({**feedback, "position": np.zeros(30)}).fingerprint == wanted


def test_positions_of_obp_are_a_category():
    feedback = {"action": [0, 2], "reward": [1, 0], "pscore": [0.5, 0.5], "position": [0, 2]}
    log = Log.from_obp({**feedback, "n_actions": 4})
    assert log.schema.context == ContextSchema.of({"position": ["0", "2"]})
    assert [choice.name for choice in log.schema.menu.slots[0].choices] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(
    "feedback",
    [
        {},
        [],
        {"action": [0], "reward": None},
        {"action": [[0]], "reward": [1]},
        {"action": [0], "reward": [1], "n_actions": 0},
        {"action": [0], "reward": [1], "n_actions": 10**9},
        {"action": [0], "reward": [1], "n_actions": "x"},
        {"action": [0, 1], "reward": [1]},
        {"action": [0, 1], "reward": [1, 0], "position": [1, 2, 3]},
        {"action": [-1, 1], "reward": [1, 0]},
        {"action": [3, 1], "reward": [1, 0], "n_actions": 3},
        {"action": [], "reward": []},
    ],
)
def test_feedback_that_makes_no_sense_is_refused(feedback):
    with raises_code("invalid-input"):
        Log.from_obp(feedback)


@pytest.mark.parametrize(
    "arrays",
    [
        ([0, 1], [1]),
        ([[[0]]], [1]),
        ([[0], [0, 1]], [1, 0]),
        (5, [1]),
        ([0], [[1]]),
        ([0], ["x"]),
        ([], []),
    ],
)
def test_arrays_that_make_no_sense_are_refused(arrays):
    with raises_code("invalid-input"):
        Log.from_arrays(*arrays)


def test_arrays_of_several_slots_have_names():
    log = Log.from_arrays([[0, 1], [2, 0]], [1, 0])
    assert log.schema.menu.declaration == {"slot0": ["0", "2"], "slot1": ["0", "1"]}
    assert log.action.tolist() == [[0, 1], [1, 0]]


SLOTS = {
    "action_title": ["A", "B", "A"],
    "action_layout": ["wide", "wide", "narrow"],
    "reward": [0.5, 2.0, 1.0],
    "propensity": [0.25, 0.25, 0.1],
    "propensity_title": [0.5, 0.5, 0.2],
    "propensity_layout": [0.5, 0.5, 0.5],
}


def test_slots_have_a_choice_each_and_may_have_their_own_propensity():
    log = Log.read(SLOTS)
    assert log.schema.menu.declaration == {"title": ["A", "B"], "layout": ["narrow", "wide"]}
    assert log.action.tolist() == [[0, 1], [1, 1], [0, 0]]
    assert log.slot_propensity.tolist() == [[0.5, 0.5], [0.5, 0.5], [0.2, 0.5]]
    assert log.schema.rewards["kind"] == "continuous"
    assert log.notes == ()


def test_propensities_of_some_slots_alone_are_not_used_and_that_is_said():
    table = {name: column for name, column in SLOTS.items() if name != "propensity_title"}
    log = Log.read(table)
    assert log.slot_propensity is None
    assert log.notes == ("columns that were not used: propensity_layout",)


def test_an_interval_holds_numbers_and_its_propensity_is_a_density():
    table = {"action_price": [1, 10, 2.5], "reward": [1, 0, 1], "propensity": [2.5, 0.1, 1.0]}
    log = Log.read(table, actions={"price": (1, 10)})
    assert log.action.tolist() == [[1.0], [10.0], [2.5]]
    assert log.propensity.tolist() == [2.5, 0.1, 1.0]
    with raises_code("invalid-input"):
        Log.read(table, actions={"price": (1, 9)})


def test_slots_and_intervals_go_together():
    table = {"action_price": [1.5, 2.5], "action_title": ["B", "A"], "reward": [1, 0]}
    log = Log.read(table, actions={"price": (1, 10), "title": ["A", "B"]})
    assert log.action.tolist() == [[1.0, 1.5], [0.0, 2.5]]


def test_columns_are_found_by_a_mapping():
    table = {"arm": ACTION, "click": REWARD, "p": PROPENSITY, "years": AGE, "land": COUNTRY}
    roles = {"action": "arm", "reward": "click", "propensity": "p"}
    log = Log.read(table, columns={**roles, "context": {"age": "years", "country": "land"}})
    assert log.fingerprint == Log.read(TABLE).fingerprint
    listed = Log.read(table, columns={**roles, "context": ["years"]})
    assert listed.schema.context.names == ("years",)
    assert listed.notes == ("columns that were not used: land",)


def test_what_is_declared_need_not_occur():
    log = Log.read(
        TABLE,
        actions=["Z", "A", "B", "C"],
        context={"country": ["de", "fr", "it", "xx"], "age": float},
        rewards="continuous",
    )
    assert log.action[:, 0].tolist() == [2, 1, 3, 1, 2]
    assert log.context[:, 0].tolist() == [1, 0, 1, 2, 0]
    assert log.schema.rewards["kind"] == "continuous"
    again = Log.read(TABLE, schema=log.schema)
    assert again.fingerprint == log.fingerprint


def test_a_schema_is_refused_where_the_log_has_other_columns():
    for declared, words in [
        (
            {"actions": {"a": ["A"], "b": ["B"]}},
            "the slot 'a' is declared, and the log has no column",
        ),
        ({"context": {"age": float, "size": float}}, "'size' is declared"),
        ({"context": {"age": float}}, "'country', which is not declared"),
    ]:
        with raises_code("invalid-input"):
            Log.read(TABLE, **declared)


def test_defaults_stand_for_what_is_missing_and_are_counted():
    table = {
        "action": ["A", "B", "A"],
        "reward": [1, 0, 1],
        "propensity": [0.5, 0.5, 0.5],
        "context_age": [None, 3.0, 4.0],
        "context_country": ["fr", None, "xx"],
    }
    fields = {"age": submax.Number(default=7.0), "country": submax.Category(("de", "fr"), "de")}
    log = Log.read(table, context=fields)
    assert log.context.tolist() == [[7.0, 1.0], [3.0, 0.0], [4.0, 0.0]]
    assert log.notes == (
        "column 'context_age': 1 values are missing, and were replaced by the default 7.0",
        "column 'context_country': 2 values are missing or not declared, and were replaced by "
        "the default 'de'",
    )


def test_a_default_does_not_stand_for_what_is_no_number():
    table = {"action": ["A", "B"], "reward": [1, 0], "context_age": ["x", "1"]}
    with raises_code("invalid-input"):
        Log.read(table, context={"age": submax.Number(default=0.0)})


ELIGIBLE = [["A", "B"], ["C", "A"], None, ["C", "B", "A"], ["B", "A"]]


def in_csv(cells, folder):
    path = folder / "log.csv"
    pd.DataFrame({**TABLE, "eligible": cells}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    "form",
    [
        lambda cells, folder: {**TABLE, "eligible": cells},
        lambda cells, folder: pd.DataFrame({**TABLE, "eligible": cells}),
        lambda cells, folder: {**TABLE, "eligible": [cell and [cell] for cell in cells]},
        lambda cells, folder: {**TABLE, "eligible": [cell and json.dumps(cell) for cell in cells]},
        lambda cells, folder: {**TABLE, "eligible": [cell and "|".join(cell) for cell in cells]},
        lambda cells, folder: in_csv([cell and json.dumps(cell) for cell in cells], folder),
        lambda cells, folder: in_csv([cell and json.dumps([cell]) for cell in cells], folder),
        lambda cells, folder: in_csv([cell and "|".join(cell) for cell in cells], folder),
    ],
    ids=["lists", "frame", "nested", "json", "bars", "csv json", "csv nested", "csv bars"],
)
def test_eligible_sets_in_any_form_are_the_same(form, tmp_path):
    log = Log.read(form(ELIGIBLE, tmp_path))
    assert log.eligible_sets == (((0, 1, 2),), ((0, 1),), ((0, 2),))
    # All of them, in words or without, is everything.
    assert log.eligible_set.tolist() == [1, 2, 0, 0, 1]


def test_eligible_sets_of_slots_are_lists_of_lists():
    cells = ['[["A", "B"], ["wide"]]', '[["B"], ["wide", "narrow"]]', None]
    log = Log.read({**SLOTS, "eligible": cells})
    assert log.eligible_sets == (((0, 1), (0, 1)), ((0, 1), (1,)), ((1,), (0, 1)))
    assert log.eligible_set.tolist() == [1, 2, 0]


def test_choices_that_were_eligible_and_never_taken_are_in_the_menu():
    log = Log.read({"action": ["B", "B"], "reward": [1, 0], "eligible": ["B|D", "A|B"]})
    assert log.schema.menu.declaration == ["A", "B", "D"]
    assert log.eligible_sets == (((0, 1, 2),), ((1, 2),), ((0, 1),))
    assert log.action.tolist() == [[1], [1]]


def test_sets_of_rows_that_are_skipped_leave_nothing_behind():
    table = {"action": ["B", "B", "B"], "reward": ["x", 1, 0], "eligible": ["B|Z", "A|B", "Z|Q"]}
    log = Log.read(table, skip_bad_rows=True)
    assert log.schema.menu.declaration == ["A", "B"]
    assert log.eligible_sets == (((0, 1),),)
    assert log.eligible_set.tolist() == [0]


@pytest.mark.parametrize(
    "cell",
    ["[]", "[[]]", "[", "Z", "A|Z", '["A", ["B"]]', '["A", null]', '{"A": 1}', "[" * 100_000, "||"],
    ids=lambda cell: cell[:15],
)
def test_cells_that_hold_no_set_are_bad_rows(cell):
    table = {"action": ["A", "A"], "reward": [1, 0], "eligible": ["A|B", cell]}
    with raises_code("invalid-input"):
        Log.read(table, actions=["A", "B"])


def test_an_action_that_was_not_eligible_is_a_bad_row():
    table = {"action": ["A", "B", "C"], "reward": [1, 0, 1], "eligible": ["A|B", "A|C", "A|B"]}
    with pytest.raises(InputError) as refused:
        Log.read(table)
    assert "2 of 3 rows" in str(refused.value)
    assert (
        "column 'eligible', row 2: 'A|C' does not contain the action that was taken (2 rows)"
        in str(refused.value)
    )


def test_many_different_sets_are_checked_in_no_time():
    rng = np.random.default_rng(0)
    rows = 20_000
    cells = [f"{one}|a{row % 9000}|z" for row, one in enumerate(rng.choice(["x", "y"], rows))]
    action = [cell[0] for cell in cells]
    action[7] = "y" if action[7] == "x" else "x"
    log = Log.read(
        {"action": action, "reward": rng.integers(2, size=rows), "eligible": cells},
        skip_bad_rows=True,
    )
    assert len(log) == rows - 1


def test_rows_are_sorted_by_time_and_the_note_names_the_row_of_the_file():
    table = {
        "action": ["A", "Z", "B", "A", "B"],
        "reward": [0, 0, 1, 2, 3],
        "propensity": [0.5] * 5,
        "time": [10, 11, 30, 20, 25],
    }
    log = Log.read(table, actions=["A", "B"], skip_bad_rows=True)
    assert log.reward.tolist() == [0, 2, 3, 1]
    assert log.action[:, 0].tolist() == [0, 0, 1, 1]
    assert log.notes[1] == (
        "the rows were not in the order of 'time' (row 4 is earlier than the row before; number "
        "of such rows: 1), and were sorted"
    )


@pytest.mark.parametrize(
    "moments",
    [
        [3, 1, 2],
        ["3", "1", "2.0"],
        ["2024-03-01", "2024-01-01", "2024-02-01"],
        ["2024-01-01T00:00:03Z", "2024-01-01T02:00:01+02:00", "2024-01-01 00:00:02"],
        ["20240301", "20240101", "20240201"],
        pd.to_datetime(["2024-03-01", "2024-01-01", "2024-02-01"]),
        pd.to_datetime(["2024-03-01", "2024-01-01", "2024-02-01"], utc=True),
        pd.to_datetime(["2024-03-01", "2024-01-01", "2024-02-01"]).date,
        np.array(["2024-03-01", "2024-01-01", "2024-02-01"], dtype="datetime64[ns]"),
    ],
    ids=lambda moments: str(moments[2]),
)
def test_moments_are_numbers_dates_or_text(moments):
    log = Log.read({"action": ["A"] * 3, "reward": [3, 1, 2], "at": moments})
    assert log.reward.tolist() == [1, 2, 3]


def test_what_is_no_moment_is_a_bad_row():
    table = {"action": ["A"] * 3, "reward": [1, 0, 1], "at": ["2024-01-01", "soon", None]}
    with pytest.raises(InputError) as refused:
        Log.read(table)
    assert "column 'at', row 2: 'soon' is not a time (1 row)" in str(refused.value)
    assert "column 'at', row 3: None is missing (1 row)" in str(refused.value)


IDS = {"action": ["A", "B", "A", "B"], "reward": [0, 1, 1, 0], "propensity": [0.5] * 4}


@pytest.mark.parametrize(
    "ids",
    [
        [1, 2, 1, 2],
        ["a", "b", "a", "b"],
        [1.5, 2.5, 1.5, 2.5],
        [2**63, 2**63 + 1, 2**63, 2**63 + 1],
        pd.Categorical(["a", "b", "a", "b"]),
    ],
    ids=lambda ids: str(ids[0]),
)
def test_an_id_that_was_there_before_is_named_with_its_row(ids):
    table = pd.DataFrame({**IDS, "id": ids})
    with pytest.raises(InputError) as refused:
        Log.read(table)
    assert "2 of 4 rows of the table" in str(refused.value)
    assert "column 'id', row 3: the id occurred before, in row 1 (2 rows)" in str(refused.value)
    log = Log.read(table, skip_bad_rows=True)
    assert log.reward.tolist() == [0, 1]
    assert log.notes[0].startswith("2 bad rows were skipped: column 'id', row 3: the id occurred")


def test_if_ids_repeat_the_error_says_how_to_read_without_ids():
    table = {**IDS, "user": ["ann", "bob", "ann", "bob"]}
    advice = (
        "If 'user' is the id of a user and not of a row, say that the log has no id: --column id="
    )
    with pytest.raises(InputError) as refused:
        Log.read(table, columns={"id": "user"})
    assert "--skip-bad-rows" in str(refused.value)
    assert advice in str(refused.value)
    assert len(Log.read({**IDS, "id": table["user"]}, columns={"id": ""})) == 4


def test_other_bad_rows_are_no_reason_to_speak_of_ids():
    with pytest.raises(InputError) as refused:
        Log.read({**IDS, "id": [1, 2, 3, 4], "reward": [0, 1, None, 0]})
    assert "--column id=" not in str(refused.value)


PRICES = [0.5, 1.25, 3.0, 0.5]


def test_actions_that_are_numbers_and_not_whole_are_named_in_a_note():
    log = Log.read({"action_price": PRICES, "reward": [0, 1, 1, 0]})
    assert log.notes[-1] == (
        "column 'action_price' holds numbers that are not whole, and they were read as 3 names: if "
        "they are real-valued actions, declare an interval, actions={'price': (low, high)}"
    )
    declared = Log.read({"action_price": PRICES, "reward": [0, 1, 1, 0]}, actions={"price": (0, 4)})
    assert declared.action[:, 0].tolist() == PRICES
    assert not any("not whole" in note for note in declared.notes)


def test_the_note_about_plain_actions_shows_a_declaration():
    table = {"action": PRICES, "reward": [0, 1, 1, 0]}
    assert (
        Log.read(table)
        .notes[-1]
        .endswith(
            "declare an interval, columns={'action': ['action']}, actions={'action': (low, high)}"
        )
    )
    log = Log.read(table, columns={"action": ["action"]}, actions={"action": (0, 4)})
    assert log.action[:, 0].tolist() == PRICES


@pytest.mark.parametrize(
    "actions",
    [[0, 1, 2, 0], [1.0, 2.0, 1.0, 2.0], ["1", "2", "1", "2"], ["1.5", "beta", "1.5", "beta"]],
    ids=str,
)
def test_whole_numbers_and_names_are_no_surprise(actions):
    assert not any("not whole" in one for one in Log.read({**IDS, "action": actions}).notes)


def test_declared_names_may_be_numbers():
    log = Log.read({**IDS, "action": ["0.5", "1.5", "0.5", "1.5"]}, actions=["0.5", "1.5"])
    assert not any("not whole" in one for one in log.notes)


@pytest.mark.parametrize(
    "ids", [[-1, -2, 2**61 - 1, 0], [0, -(2**63), 2**63 - 1, -1], ["1", "01", "1.0", "1 "]]
)
def test_ids_that_differ_in_anything_are_different(ids):
    assert len(Log.read({**IDS, "id": ids})) == 4


def test_the_first_row_of_an_id_that_can_be_used_is_kept():
    table = {**IDS, "reward": ["x", 1, 0, 0], "id": ["a", "b", "a", "c"]}
    log = Log.read(table, skip_bad_rows=True)
    assert log.reward.tolist() == [1, 0, 0]


@pytest.mark.parametrize("ids", [[None, "a", "b", "c"], ["", "a", "b", "c"], [None, 1, 2, 3]])
def test_every_row_has_an_id(ids):
    with raises_code("invalid-input"):
        Log.read({**IDS, "id": ids})


@pytest.mark.parametrize("ids", [[5, 4, 7, 6], ["5", "4", "7", "6"], [5.0, 4.0, 7.0, 6.0]])
def test_decreasing_ids_give_a_note_and_rows_are_not_sorted(ids):
    log = Log.read({**IDS, "id": ids})
    assert log.reward.tolist() == IDS["reward"]
    assert log.notes == (
        "the ids in 'id' are not in increasing order (row 2 is below the row before; number of "
        "such rows: 2); the rows were not sorted, since there is no column of times",
    )


@pytest.mark.parametrize(
    "columns",
    [
        {"id": [1, 2, 3, 9]},
        {"id": ["5", "4", "x", "6"]},
        {"id": [5, 4, 7, 6], "time": [1, 2, 3, 4]},
    ],
)
def test_ids_without_an_order_give_no_note(columns):
    assert Log.read({**IDS, **columns}).notes == ()


def test_the_row_of_an_id_that_goes_backwards_is_that_of_the_file():
    table = {**IDS, "action": ["A", "Z", "B", "B"], "id": [5, 1, 7, 6]}
    log = Log.read(table, actions=["A", "B"], skip_bad_rows=True)
    assert "(row 4 is below the row before; number of such rows: 1)" in log.notes[1]


def test_gaps_among_propensities_are_counted_and_nan_is_bad():
    log = Log.read({**IDS, "propensity": [0.5, None, 0.5, None]})
    assert np.isnan(log.propensity).tolist() == [False, True, False, True]
    assert log.notes == ("2 of 4 rows have no propensity",)
    frame = Log.read(pd.DataFrame({**IDS, "propensity": [0.5, np.nan, 0.5, np.nan]}))
    assert frame.notes == log.notes
    none = Log.read({"action": ["A", "B"], "reward": [1, 0]})
    assert none.notes == ("2 of 2 rows have no propensity",)
    for values in ([0.5, np.nan, 0.5, 0.5], ["0.5", "nan", "0.5", "0.5"]):
        with raises_code("invalid-input"):
            Log.read({**IDS, "propensity": values})


@pytest.mark.parametrize("reward", [[True, False], ["true", "FALSE"], [" 1", "0 "], ["1e0", "0.0"]])
def test_rewards_may_be_truth_values_and_have_spaces(reward):
    log = Log.read({"action": ["A", "B"], "reward": reward})
    assert log.reward.tolist() == [1.0, 0.0]
    assert log.schema.rewards["kind"] == "binary"


def test_huge_whole_numbers_are_numbers():
    table = {"action": [10**30, 2**63, 1], "reward": [2**62, 10**25, 1]}
    log = Log.read(table)
    assert log.reward.tolist() == [2.0**62, 1e25, 1.0]
    assert log.schema.menu.declaration == ["1", str(2**63), str(10**30)]


def test_numbers_that_are_names_are_sorted_as_numbers():
    log = Log.read({"action": [10.0, 2.0, 1.5], "reward": [1, 0, 1]})
    assert log.schema.menu.declaration == ["1.5", "2", "10"]


def test_columns_of_several_types_name_the_row_that_is_odd():
    table = {"action": ["A", 1], "reward": [1, "x"]}
    for source in (table, pd.DataFrame(table)):
        with raises_code("invalid-input"):
            Log.read(source)
        log = Log.read(source, skip_bad_rows=True)
        assert log.schema.menu.declaration == ["A"]


def test_one_column_of_actions_is_that_of_the_interval_that_is_declared():
    table = {"cost": [1.5, 2.5, 9.0], "reward": [1, 0, 1], "density": [0.1, 0.2, 0.1]}
    columns = {"action": "cost", "propensity": "density"}
    log = Log.read(table, columns=columns, actions={"price": (1, 10)})
    np.testing.assert_allclose(log.action[:, 0], table["cost"])
    assert log.schema.menu.ranges[0].name == "price"


def test_what_is_learned_is_shown_in_a_line():
    log = Log.read(TABLE)
    assert repr(learn(log, "rcp-submax")) == f"Learned('rcp-submax' from {len(log)} rows)"


@pytest.mark.parametrize(("text", "number"), [("yes", 1.0), ("no", 0.0), ("True", 1.0)])
def test_rewards_may_be_words(text, number):
    log = Log.read({"action": ["A", "B"], "reward": [text, "no"]})
    assert log.reward.tolist() == [number, 0.0]
