import dataclasses
import pickle

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.environments.tables.classification import Classification
from submax.testing import check_environment

FEATURES = [[1.0, 5.0], [2.0, 5.0], [1.0, 5.0], [4.0, 5.0], [1.0, 5.0]]
LABELS = ["b", "a", "b", "c", "a"]


def written(path, label="label"):
    columns = np.array(FEATURES).T
    table = pa.table({"x": columns[0], label: LABELS, "y": columns[1]})
    write = csv.write_csv if path.suffix == ".csv" else parquet.write_table
    write(table, str(path))
    return str(path)


def text_file(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text)
    return str(path)


def every_pair(environment):
    """Each row of the table with each arm, for one replica."""
    features, arms = environment.rows.features, environment.problem.space.size
    context = np.repeat(features, arms, axis=0)[None]
    return context, np.tile(np.arange(arms), len(features))[None, :, None]


@pytest.mark.parametrize("standardize", [True, False])
def test_means_are_the_shares_of_the_labels(standardize):
    environment = Classification.of(FEATURES, LABELS, standardize)
    assert environment.problem == Problem(Arms(3), 2)
    assert environment.classes.tolist() == ["a", "b", "c"]
    mean = environment.mean_reward(1, *every_pair(environment)).reshape(5, 3)
    shared = [1 / 3, 2 / 3, 0.0]
    assert np.allclose(mean, [shared, [1, 0, 0], shared, [0, 0, 1], shared])
    best = environment.best_reward(1, environment.rows.features[None])
    assert np.allclose(best, [[2 / 3, 1, 2 / 3, 1, 2 / 3]])


def test_means_are_those_of_a_loop_over_rows(seed):
    rng = np.random.default_rng(seed)
    features = rng.integers(3, size=(60, 2)) - 1.0
    labels = rng.integers(3, size=60)
    environment = Classification.of(features, labels, standardize=False)
    context, action = every_pair(environment)
    mean = environment.mean_reward(1, context, action)[0]
    for row, arm, found in zip(context[0], action[0, :, 0], mean, strict=True):
        same = [label for one, label in zip(features, labels, strict=True) if all(one == row)]
        assert found == pytest.approx(sum(label == arm for label in same) / len(same))


def test_features_are_standardized_and_constant_ones_are_zero():
    features = Classification.of(np.array(FEATURES) + 0.1, LABELS).rows.features
    assert np.allclose(features[:, 0].mean(), 0)
    assert np.allclose(features[:, 0].var(), 1)
    assert np.array_equal(features[:, 1], np.zeros(5))


def test_without_standardizing_features_are_those_of_the_table():
    assert np.array_equal(Classification.of(FEATURES, LABELS, False).rows.features, FEATURES)


def test_the_two_zeros_are_the_same_feature():
    environment = Classification.of([[0.0], [-0.0], [1.0]], [0, 1, 1], standardize=False)
    mean = environment.mean_reward(1, np.array([[[-0.0]]]), np.array([[[1]]]))
    assert mean.tolist() == [[0.5]]


def test_contexts_are_rows_drawn_uniformly_for_each_replica(seed):
    environment = Classification.of(np.arange(5.0)[:, None], [0, 1, 0, 1, 0], standardize=False)
    context = environment.contexts(2, 5000, np.random.default_rng(seed))
    assert context.shape == (2, 5000, 1)
    counts = np.stack([np.bincount(one[:, 0].astype(int), minlength=5) for one in context])
    assert np.all(np.abs(counts - 1000) < 6 * np.sqrt(5000 * 0.2 * 0.8))
    assert not np.array_equal(context[0], context[1])


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "TABLE.CSV"])
@pytest.mark.parametrize("standardize", [True, False])
def test_a_file_gives_what_its_arrays_give(tmp_path, name, standardize):
    path = tmp_path / name.lower()
    written(path, label="kind")
    path = path.rename(tmp_path / name)
    from_file = Classification(str(path), "kind", standardize)
    from_arrays = Classification.of(FEATURES, LABELS, standardize)
    for one, other in zip(from_file.rows, from_arrays.rows, strict=True):
        assert np.array_equal(one, other)
    check_environment(from_file)


@pytest.mark.parametrize("label", [[3, 1, 3], [True, False, True], [2.5, -1.0, 2.5]])
def test_labels_of_any_type_are_sorted(tmp_path, label):
    path = tmp_path / "table.parquet"
    parquet.write_table(pa.table({"x": [1, 2, 3], "label": label}), str(path))
    assert Classification(str(path)).classes.tolist() == sorted(set(label))


def test_labels_in_a_dictionary_are_read(tmp_path):
    path = tmp_path / "table.parquet"
    label = pa.array(["u", "t", "u"]).dictionary_encode()
    parquet.write_table(pa.table({"x": [1, 2, 3], "label": label}), str(path))
    assert Classification(str(path)).classes.tolist() == ["t", "u"]


def test_its_fields_are_plain_and_say_what_it_is(tmp_path):
    file = written(tmp_path / "table.csv")
    fields = {"file": file, "label": "label", "standardize": True, "replacement": True}
    fields["pays"] = (0.0, 1.0)
    environment = Classification(file)
    assert environment.problem.context_width == 2
    assert dataclasses.asdict(environment) == fields
    plain = dataclasses.asdict(Classification.of(FEATURES, LABELS))
    assert {key: type(value) for key, value in plain.items()} == {
        key: type(value) for key, value in fields.items()
    }


def test_arrays_are_equal_when_their_content_is():
    one = Classification.of(FEATURES, LABELS)
    assert one == Classification.of(np.array(FEATURES), np.array(LABELS))
    assert hash(one) == hash(Classification.of(FEATURES, LABELS))
    assert one != Classification.of(FEATURES, LABELS, standardize=False)
    assert one != Classification.of(FEATURES, LABELS, replacement=False)
    assert one != Classification.of(FEATURES, LABELS, pays=(0.0, 0.5))
    assert one != Classification.of(FEATURES, LABELS[::-1])
    assert one != Classification.of(np.array(FEATURES)[::-1], LABELS)


def test_a_pickled_copy_has_the_same_rows(tmp_path):
    for environment in (
        Classification.of(FEATURES, LABELS),
        Classification(written(tmp_path / "table.csv")),
    ):
        restored = pickle.loads(pickle.dumps(environment))
        assert restored == environment
        assert np.array_equal(restored.rows.features, environment.rows.features)


def test_a_context_that_is_no_row_is_refused():
    environment = Classification.of(FEATURES, LABELS, standardize=False)
    for value in (3.0, 1e9, -1e9, float("nan")):
        context = np.array([[[value, 5.0]]])
        with raises_code("invalid-input"):
            environment.mean_reward(1, context, np.zeros((1, 1, 1), dtype=np.int64))
        with raises_code("invalid-input"):
            environment.best_reward(1, context)


def test_a_bad_file_is_refused(tmp_path):
    with raises_code("invalid-input"):
        Classification(str(tmp_path / "none.csv"))
    with raises_code("invalid-input"):
        Classification("table.txt")
    with raises_code("invalid-input"):
        Classification(3)
    broken = tmp_path / "broken.parquet"
    broken.write_text("no table")
    with raises_code("invalid-input"):
        _ = Classification(str(broken)).problem


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,lable\n1,a\n2,b\n", "unknown column of table.csv: 'label': did you mean 'lable'"),
        ("x,label,label\n1,a,b\n2,b,a\n", "more than one column 'label'"),
        ("x,label\n1,a\ntwo,b\n", "column 'x' must hold finite numbers, but row 2 holds 'two'"),
        ("x,label\n1,a\n2,b\n,b\n", "column 'x' must hold finite numbers, but row 3 holds None"),
        ("x,label\n1,a\nnan,b\n", "column 'x' must hold finite numbers, but row 2 holds"),
        ("x,label\n1,a\ninf,b\n", "column 'x' must hold finite numbers, but row 2 holds inf"),
        ("x,label\n1,3\n2,\n", "column 'label' has no label in row 2"),
        ("x,label\n1,a\n2,a\n", "at least 2 different labels, .* not 1"),
        ("x,label\n", "at least one row and one feature, not"),
        ("label\na\nb\n", "at least one row and one feature, not"),
        ("x,label\n1,a\n2\n", "cannot be read as a"),
        ("", "cannot be read as a"),
    ],
)
def test_a_bad_table_is_refused(tmp_path, text, message):
    with raises_code("invalid-input"):
        _ = Classification(text_file(tmp_path, text)).problem


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        (FEATURES, LABELS[:-1], r"each of the 5 rows of features, not the shape \(4,\)"),
        (FEATURES, [[label] for label in LABELS], r"shape \(5, 1\)"),
        ([1.0, 2.0], [0, 1], r"features must be an array \[N, D\], .* \(2,\)"),
        ([["one"], ["two"]], [0, 1], "features must be numbers"),
        ([[1.0, 2.0], [3.0, np.nan]], [0, 1], "column 2, row 2 holds nan"),
        ([[1.0], [2.0]], [0.0, np.nan], "row 2 has no label"),
        ([[1.0], [2.0]], np.array([None, "a"], dtype=object), "of one type that can be sorted"),
        ([[1.0], [2.0]], [1, 1], "at least 2 different labels, .* not 1"),
        (np.zeros((0, 2)), [], "at least one row and one feature, not"),
        (np.zeros((2, 0)), [0, 1], "at least one row and one feature, not"),
    ],
)
def test_bad_arrays_are_refused(features, labels, message):
    with raises_code("invalid-input"):
        Classification.of(features, labels)
