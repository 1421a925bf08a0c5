import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from refusals import raises_code

import submax
from submax.evaluation import Log

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
SLOTS = {
    "action_title": ["A", "B", "A"],
    "action_layout": ["wide", "wide", "narrow"],
    "reward": [0.5, 2.0, 1.0],
    "propensity": [0.25, 0.25, 0.1],
    "propensity_title": [0.5, 0.5, 0.2],
    "propensity_layout": [0.5, 0.5, 0.5],
}
IDS = {"action": ["A", "B", "A", "B"], "reward": [0, 1, 1, 0], "propensity": [0.5] * 4}


# Forms of a log


def as_csv(folder):
    path = folder / "log.csv"
    csv.write_csv(pa.table(TABLE), path)
    return path


def as_parquet(folder):
    path = folder / "log.parquet"
    parquet.write_table(pa.table(TABLE), path)
    return path


def as_small_chunks(folder):
    return pa.concat_tables([pa.table(TABLE).slice(first, 1) for first in range(len(ACTION))])


def as_wide_types(folder):
    table = pa.table(TABLE)
    types = [pa.large_string() if one.type == pa.string() else one.type for one in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))


FORMS = {
    "csv": as_csv,
    "parquet": as_parquet,
    "parquet called csv": lambda folder: as_parquet(folder).rename(folder / "log.csv"),
    "small chunks": as_small_chunks,
    "wide types": as_wide_types,
    "columns": lambda folder: TABLE,
    "arrays": lambda folder: {name: np.array(column) for name, column in TABLE.items()},
    "arrow": lambda folder: pa.table(TABLE),
    "frame": lambda folder: pd.DataFrame(TABLE, index=list("vwxyz")),
    "categorical frame": lambda folder: pd.DataFrame(TABLE).astype(
        {"action": "category", "context_country": "category"}
    ),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
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


def test_arrays_are_the_same_log_as_a_table():
    rng = np.random.default_rng(0)
    action, context = rng.integers(4, size=30), rng.normal(size=(30, 2)).astype(np.float32)
    reward, propensity = rng.integers(2, size=30), rng.uniform(0.1, 1.0, 30)
    table = {"action": action, "reward": reward, "propensity": propensity}
    table |= {"context_x0": context[:, 0], "context_x1": context[:, 1]}
    arrays = Log.read(
        {"action": action, "reward": reward, "propensity": propensity, "context": context}
    )
    assert arrays.fingerprint == Log.read(table).fingerprint


# Columns and declarations


def test_columns_are_found_by_usual_names_or_a_mapping(mentioned):
    table = {"arm": ACTION, "click": REWARD, "p": PROPENSITY, "years": AGE, "land": COUNTRY}
    roles = {"action": "arm", "reward": "click", "propensity": "p"}
    log = Log.read(table, columns={**roles, "context": {"age": "years", "country": "land"}})
    assert log.fingerprint == Log.read(TABLE).fingerprint
    listed = Log.read(table, columns={**roles, "context": ["years"]})
    assert listed.schema.context.names == ("years",)
    assert mentioned(listed.notes, "land")
    usual = Log.read({**IDS, "pscore": [0.1] * 4, "timestamp": [4, 3, 2, 1]})
    assert usual.reward.tolist() == IDS["reward"][::-1]
    del table["p"]
    logged = Log.read({**table, "pscore": PROPENSITY}, columns={"action": "arm", "reward": "click"})
    assert logged.propensity.tolist() == PROPENSITY


@pytest.mark.parametrize("nothing", [None, ""])
def test_none_stands_for_no_column(nothing):
    more = {"id": [1] * 4, "time": [4, 3, 2, 1], "context_age": AGE[:4], "eligible": ["?"] * 4}
    roles = ["propensity", "id", "time", "context", "eligible"]
    log = Log.read({**IDS, **more}, columns=dict.fromkeys(roles, nothing))
    assert log.reward.tolist() == IDS["reward"]
    assert np.isnan(log.propensity).all()
    assert log.schema.context.names == ()


@pytest.mark.parametrize(
    ("change", "columns", "parameter"),
    [
        ({"reward": None}, {}, "reward"),
        ({"action": None}, {}, "action"),
        ({}, {"rewards": "reward"}, None),
        ({}, {"reward": "rewrd"}, None),
        ({}, {"reward": None}, "reward"),
        ({}, {"propensity": ["reward"]}, "propensity"),
        ({}, {"action": 5}, "action"),
        ({}, {"context": ["age"]}, None),
    ],
)
def test_columns_that_make_no_sense_are_refused(change, columns, parameter):
    table = {name: one for name, one in {**IDS, **change}.items() if one is not None}
    with raises_code("invalid-input", parameter):
        Log.read(table, columns=columns)


def test_slots_have_a_choice_each_and_may_have_their_own_propensity(mentioned):
    log = Log.read(SLOTS)
    assert log.schema.menu.declaration == {"title": ["A", "B"], "layout": ["narrow", "wide"]}
    assert log.action.tolist() == [[0, 1], [1, 1], [0, 0]]
    assert log.slot_propensity.tolist() == [[0.5, 0.5], [0.5, 0.5], [0.2, 0.5]]
    assert log.schema.rewards["kind"] == "continuous"
    assert log.notes == ()
    assert Log.read({**SLOTS, "propensity": [None] * 3}).notes == ()
    # Declared in another order, slots keep their propensities.
    other = Log.read(SLOTS, actions={"layout": ["narrow", "wide"], "title": ["A", "B"]})
    assert other.slot_propensity.tolist() == [one[::-1] for one in log.slot_propensity.tolist()]
    # The propensities of some slots alone are not used.
    some = Log.read({name: column for name, column in SLOTS.items() if name != "propensity_title"})
    assert some.slot_propensity is None
    assert mentioned(some.notes, "propensity_layout")
    arrays = Log.read({"action": np.array([[0, 1], [2, 0]]), "reward": [1, 0]})
    assert arrays.schema.menu.declaration == {"slot0": ["0", "2"], "slot1": ["0", "1"]}
    assert arrays.action.tolist() == [[0, 1], [1, 0]]


def test_an_interval_holds_numbers_and_its_propensity_is_a_density(refused):
    table = {"action_price": [1, 10, 2.5], "reward": [1, 0, 1], "propensity": [2.5, 0.1, 1.0]}
    log = Log.read(table, actions={"price": (1, 10)})
    assert log.action.tolist() == [[1.0], [10.0], [2.5]]
    assert log.propensity.tolist() == [2.5, 0.1, 1.0]
    # One column of actions is that of the interval that is declared.
    renamed = {"cost": table["action_price"], "reward": [1, 0, 1], "density": [2.5, 0.1, 1.0]}
    columns = {"action": "cost", "propensity": "density"}
    again = Log.read(renamed, columns=columns, actions={"price": (1, 10)})
    assert again.fingerprint == log.fingerprint
    refused(table, actions={"price": (1, 9)})
    both = {"action_price": [1.5, 2.5], "action_title": ["B", "A"], "reward": [1, 0]}
    mixed = Log.read(both, actions={"price": (1, 10), "title": ["A", "B"]})
    assert mixed.action.tolist() == [[1.0, 1.5], [0.0, 2.5]]


def test_what_is_declared_need_not_occur(refused):
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
    others = [{"a": ["A"], "b": ["B"]}, {"age": float, "size": float}, {"age": float}]
    for declared, role in zip(others, ["actions", "context", "context"], strict=True):
        refused(TABLE, **{role: declared})


def test_defaults_stand_for_what_is_missing_and_are_counted(mentioned, refused):
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
    assert mentioned(log.notes, "context_age", 1, "7.0")
    assert mentioned(log.notes, "context_country", 2, "de")
    # A default does not stand for what is no number.
    refused({**table, "context_age": ["x", "1", "2"]}, context=fields)


# Features of actions

ROWS = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "propensity": [0.5, 0.5, 0.5]}
FEATURES = {"A": {"price": 3.0, "genre": "rock"}, "B": {"price": 2.0, "genre": "jazz"}}


def described(features, rows=ROWS, **options):
    return Log.read(rows, action_features=features, **options).schema.menu.features


def test_actions_and_the_choices_of_slots_have_features():
    assert described(FEATURES) == FEATURES
    slots = {"action_title": ["A", "B"], "action_layout": ["wide", "wide"], "reward": [1, 0]}
    features = {"title": FEATURES, "layout": {"wide": {"columns": 2.0}}}
    assert described(features, slots) == features
    assert Log.read(ROWS).schema.menu.features is None
    # An action with features need not be taken.
    more = {**FEATURES, "Z": {"price": 1.0, "genre": "rock"}}
    assert described(more) == described(more, actions=["A", "B", "Z"]) == more


@pytest.mark.parametrize("actions", [None, ["A", "B"]])
@pytest.mark.parametrize("features", [{"A": FEATURES["A"]}, [FEATURES], "features.csv"])
def test_an_action_without_features_is_refused(features, actions, refused):
    refused(ROWS, action_features=features, actions=actions)


# Eligible choices

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
        lambda cells, folder: {**TABLE, "eligible": [cell and "|".join(cell) for cell in cells]},
        lambda cells, folder: in_csv([cell and json.dumps(cell) for cell in cells], folder),
        lambda cells, folder: in_csv([cell and json.dumps([cell]) for cell in cells], folder),
        lambda cells, folder: in_csv([cell and "|".join(cell) for cell in cells], folder),
    ],
    ids=["lists", "frame", "nested", "bars", "csv json", "csv nested", "csv bars"],
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


def test_a_bad_row_does_not_hide_the_set_of_good_rows_that_are_like_it():
    table = {"action": ["A"] * 9, "reward": ["x", *[1] * 8], "eligible": ["A|B"] * 8 + ["A|C"]}
    log = Log.read(table, skip_bad_rows=True)
    assert [log.eligible_sets[one] for one in log.eligible_set] == [((0, 1),)] * 7 + [((0, 2),)]


def test_the_menu_has_what_was_eligible_in_rows_that_are_read():
    log = Log.read({"action": ["B", "B"], "reward": [1, 0], "eligible": ["B|D", "A|B"]})
    assert log.schema.menu.declaration == ["A", "B", "D"]
    assert log.eligible_sets == (((0, 1, 2),), ((0, 1),), ((1, 2),))
    assert log.eligible_set.tolist() == [2, 1]
    assert log.action.tolist() == [[1], [1]]
    table = {"action": ["B", "B", "B"], "reward": ["x", 1, 0], "eligible": ["B|Z", "A|B", "Z|Q"]}
    log = Log.read(table, skip_bad_rows=True)
    assert log.schema.menu.declaration == ["A", "B"]
    assert log.eligible_sets == (((0, 1),),)


@pytest.mark.parametrize(
    "cell",
    ["[]", "[", "A|Z", "B", '["A", ["B"]]', '["A", null]', '{"A": 1}', "[" * 100_000, "||"],
    ids=lambda cell: cell[:15],
)
def test_cells_that_hold_no_set_with_the_action_are_bad_rows(cell, refused):
    table = {"action": ["A", "A", "A"], "reward": [1, 0, 1], "eligible": ["A|B", "A", cell]}
    refused(table, ("eligible", 3), actions=["A", "B"])


# Time and ids


def test_rows_are_sorted_by_time_and_the_note_names_the_row_of_the_file(mentioned):
    table = {
        "action": ["A", "Z", "B", "A", "B"],
        "reward": [0, 0, 1, 2, 3],
        "propensity": [0.5] * 5,
        "time": [10, 11, 30, 20, 25],
    }
    log = Log.read(table, actions=["A", "B"], skip_bad_rows=True)
    assert log.reward.tolist() == [0, 2, 3, 1]
    assert log.action[:, 0].tolist() == [0, 0, 1, 1]
    assert mentioned(log.notes, "time", 4, 1)


DATES = ["2024-03-01", "2024-01-01", "2024-02-01"]


@pytest.mark.parametrize(
    "moments",
    [
        [3, 1, 2],
        ["3", "1", "2.0"],
        DATES,
        ["2024-01-01T00:00:03Z", "2024-01-01T02:00:01+02:00", "2024-01-01 00:00:02"],
        ["20240301", "20240101", "20240201"],
        pd.to_datetime(DATES, utc=True),
        pd.to_datetime(DATES).date,
        np.array(DATES, dtype="datetime64[ns]"),
    ],
    ids=lambda moments: str(moments[2]),
)
def test_moments_are_numbers_dates_or_text(moments):
    log = Log.read({"action": ["A"] * 3, "reward": [3, 1, 2], "at": moments})
    assert log.reward.tolist() == [1, 2, 3]


def test_what_is_no_moment_is_a_bad_row(refused):
    table = {"action": ["A"] * 3, "reward": [1, 0, 1], "at": ["2024-01-01", "soon", None]}
    refused(table, ("at", 2, "soon"), ("at", 3))


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
def test_an_id_that_was_there_before_is_named_with_its_row(ids, mentioned, refused):
    table = pd.DataFrame({**IDS, "id": ids})
    refused(table, (2, 4), ("id", 3, 1, 2))
    log = Log.read(table, skip_bad_rows=True)
    assert log.reward.tolist() == [0, 1]
    assert mentioned(log.notes[:1], "id", 2, 3, 1)
    assert len(Log.read(table, columns={"id": None})) == 4


@pytest.mark.parametrize(
    "ids", [[-1, -2, 2**61 - 1, 0], [0, -(2**63), 2**63 - 1, -1], ["1", "01", "1.0", "1 "]]
)
def test_ids_that_differ_in_anything_are_different(ids, refused):
    assert len(Log.read({**IDS, "id": ids})) == 4
    for missing in (None, ""):
        refused({**IDS, "id": [missing, *map(str, ids[1:])]})


def test_the_first_row_of_an_id_that_can_be_used_is_kept():
    table = {**IDS, "reward": ["x", 1, 0, 0], "id": ["a", "b", "a", "c"]}
    assert Log.read(table, skip_bad_rows=True).reward.tolist() == [1, 0, 0]


# Values


def test_actions_that_are_numbers_and_not_whole_are_named_in_a_note(mentioned):
    for actions, noted in (([0.5, 1.25, 3.0, 0.5], True), (["1.5", "beta", "1", "2"], False)):
        log = Log.read({**IDS, "action": actions})
        assert mentioned(log.notes, "action") == (len(log.notes) > 0) == noted
        assert Log.read({**IDS, "action": actions}, schema=log.schema).notes == ()


def test_gaps_among_propensities_are_counted_and_nan_is_bad(mentioned, refused):
    log = Log.read({**IDS, "propensity": [0.5, None, 0.5, None]})
    assert np.isnan(log.propensity).tolist() == [False, True, False, True]
    assert mentioned(log.notes, 2, 4)
    frame = Log.read(pd.DataFrame({**IDS, "propensity": [0.5, np.nan, 0.5, np.nan]}))
    assert frame.notes == log.notes
    for values in ([0.5, np.nan, 0.5, 0.5], ["0.5", "nan", "0.5", "0.5"]):
        refused({**IDS, "propensity": values})


@pytest.mark.parametrize(
    "reward", [[True, False], ["true", "FALSE"], ["yes", "no"], [" 1", "0 "], ["1e0", "0.0"]]
)
def test_rewards_may_be_words_and_have_spaces(reward):
    log = Log.read({"action": ["A", "B"], "propensity": [0.5, 0.5], "reward": reward})
    assert log.reward.tolist() == [1.0, 0.0]
    assert log.schema.rewards["kind"] == "binary"
    # Words are remarked.
    assert len(log.notes) == (str(reward[0]) in ("true", "yes"))


def test_numbers_may_be_huge_and_as_names_are_sorted_as_numbers():
    log = Log.read({"action": [10**30, 2**63, 1], "reward": [2**62, 10**25, 1]})
    assert log.reward.tolist() == [2.0**62, 1e25, 1.0]
    assert log.schema.menu.declaration == ["1", str(2**63), str(10**30)]
    log = Log.read({"action": [10.0, 2.0, 1.5], "reward": [1, 0, 1]})
    assert log.schema.menu.declaration == ["1.5", "2", "10"]


def test_columns_of_several_types_name_the_row_that_is_odd(refused):
    table = {"action": ["A", 1], "reward": [1, "x"]}
    for source in (table, pd.DataFrame(table)):
        refused(source, ("reward", 2))
        assert Log.read(source, skip_bad_rows=True).schema.menu.declaration == ["A"]
