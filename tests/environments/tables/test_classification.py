"""Classification as a bandit: means are shares of labels, and rows come from files or arrays."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from refusals import raises_code

from submax.core.problem import Problem
from submax.core.spaces import Arms
from submax.environments.tables import Classification
from submax.simulation.experiment import cells, load_file, make_environment
from submax.testing import check_environment

FEATURES = [[1.0, 5.0], [2.0, 5.0], [1.0, 5.0], [4.0, 5.0], [1.0, 5.0]]
LABELS = ["b", "a", "b", "c", "a"]
SHARES = np.array([[1 / 3, 2 / 3, 0], [1, 0, 0], [1 / 3, 2 / 3, 0], [0, 0, 1], [1 / 3, 2 / 3, 0]])


def written(path, label="label"):
    columns = np.array(FEATURES).T
    table = pa.table({"x": columns[0], label: LABELS, "y": columns[1]})
    write = csv.write_csv if path.suffix == ".csv" else parquet.write_table
    write(table, str(path))
    return str(path)


def every_pair(environment, draws=1):
    """Each row of the table with each arm, for as many replicas as there are draws."""
    features, arms = environment.rows.features, environment.problem.space.size
    context = np.repeat(features, arms, axis=0)
    action = np.tile(np.arange(arms), len(features))[:, None]
    return np.tile(context, (draws, 1, 1)), np.tile(action, (draws, 1, 1))


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("pays", [(0.0, 1.0), (0.01, 0.1), (0.3, 0.3), (0, 1)])
def test_means_lie_between_the_two_chances_by_the_share_of_the_label(
    standardize, replacement, pays
):
    low, high = pays
    environment = Classification.of(FEATURES, LABELS, standardize, replacement, pays)
    assert environment.problem == Problem(Arms(3), 2)
    assert environment.classes.tolist() == ["a", "b", "c"]
    world = environment.reset(1, np.random.default_rng(0))
    mean = environment.mean_reward(world, *every_pair(environment)).reshape(5, 3)
    assert np.allclose(mean, low + (high - low) * SHARES)
    assert np.all(mean[SHARES == 0] == low)
    assert np.all(mean[SHARES == 1] == high)
    best = environment.best_reward(world, environment.rows.features[None])
    assert np.array_equal(best[0], mean.max(axis=1))


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


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("pays", [(0.0, 1.0), (0.05, 0.8)])
def test_payments_are_as_frequent_as_the_chances_say(pays, replacement, seed):
    draws, (low, high) = 20_000, pays
    environment = Classification.of(FEATURES, LABELS, replacement=replacement, pays=pays)
    context, action = every_pair(environment, draws)
    rng = np.random.default_rng(seed)
    reward = environment.reward(environment.reset(draws, rng), context, action, rng)
    assert set(np.unique(reward)) == {0.0, 1.0}
    chance = (low + (high - low) * SHARES).ravel()
    error = np.sqrt(chance * (1 - chance) / draws)
    assert np.all(np.abs(reward.mean(axis=0) - chance) <= 5 * error)


def test_features_are_standardized_on_request_and_constant_ones_are_zero():
    features = Classification.of(np.array(FEATURES) + 0.1, LABELS).rows.features
    assert np.allclose(features[:, 0].mean(), 0)
    assert np.allclose(features[:, 0].var(), 1)
    assert np.array_equal(features[:, 1], np.zeros(5))
    assert np.array_equal(Classification.of(FEATURES, LABELS, False).rows.features, FEATURES)


def test_the_two_zeros_are_the_same_feature():
    environment = Classification.of([[0.0], [-0.0], [1.0]], [0, 1, 1], standardize=False)
    mean = environment.mean_reward(1, np.array([[[-0.0]]]), np.array([[[1]]]))
    assert mean.tolist() == [[0.5]]


def test_contexts_are_rows_drawn_uniformly_for_each_replica(seed):
    environment = Classification.of(np.arange(5.0)[:, None], [0, 1, 0, 1, 0], standardize=False)
    context = environment.contexts(2, 5000, np.random.default_rng(seed))
    counts = np.stack([np.bincount(one[:, 0].astype(int), minlength=5) for one in context])
    assert np.all(np.abs(counts - 1000) < 6 * np.sqrt(5000 * 0.2 * 0.8))


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "TABLE.CSV"])
def test_a_file_gives_what_its_arrays_give(tmp_path, name):
    path = tmp_path / name.lower()
    written(path, label="kind")
    path = path.rename(tmp_path / name)
    from_file = Classification(str(path), "kind")
    from_arrays = Classification.of(FEATURES, LABELS)
    for one, other in zip(from_file.rows, from_arrays.rows, strict=True):
        assert np.array_equal(one, other)
    check_environment(from_file)


@pytest.mark.parametrize(
    "label",
    [
        [3, 1, 3],
        [True, False, True],
        [2.5, -1.0, 2.5],
        pa.array(["u", "t", "u"]).dictionary_encode(),
    ],
    ids=["whole", "truth", "real", "dictionary"],
)
def test_labels_of_any_type_are_sorted(tmp_path, label):
    path = tmp_path / "table.parquet"
    parquet.write_table(pa.table({"x": [1, 2, 3], "label": label}), str(path))
    given = label.to_pylist() if isinstance(label, pa.Array) else label
    assert Classification(str(path)).classes.tolist() == sorted(set(given))


def test_arrays_are_equal_when_their_content_is():
    one = Classification.of(FEATURES, LABELS)
    assert one == Classification.of(np.array(FEATURES), np.array(LABELS))
    assert hash(one) == hash(Classification.of(FEATURES, LABELS))
    assert one != Classification.of(FEATURES, LABELS, pays=(0.0, 0.5))
    assert one != Classification.of(FEATURES, LABELS[::-1])
    assert one != Classification.of(np.array(FEATURES)[::-1], LABELS)


def test_a_context_that_is_no_row_is_refused():
    environment = Classification.of(FEATURES, LABELS, standardize=False)
    for value in (3.0, -1e9, float("nan")):
        context = np.array([[[value, 5.0]]])
        with raises_code("invalid-input", "context"):
            environment.mean_reward(1, context, np.zeros((1, 1, 1), dtype=np.int64))
        with raises_code("invalid-input", "context"):
            environment.best_reward(1, context)


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("x,lable\n1,a\n2,b\n", None),
        ("x,label,label\n1,a,b\n2,b,a\n", "label"),
        ("x,label\n1,a\ntwo,b\n", "x"),
        ("x,label\n1,a\n2,b\n,b\n", "x"),
        ("x,label\n1,a\ninf,b\n", "x"),
        ("x,label\n1,3\n2,\n", "label"),
        ("x,label\n1,a\n2,a\n", "labels"),
        ("label\na\nb\n", "features"),
        ("x,label\n1,a\n2\n", "file"),
        ("", "file"),
    ],
)
def test_a_bad_table_is_refused(tmp_path, text, parameter):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with raises_code("invalid-input", parameter):
        _ = Classification(str(path)).problem


@pytest.mark.parametrize(
    ("features", "labels", "parameter"),
    [
        (FEATURES, LABELS[:-1], "labels"),
        (FEATURES, [[label] for label in LABELS], "labels"),
        ([1.0, 2.0], [0, 1], "features"),
        ([["one"], ["two"]], [0, 1], "features"),
        ([[1.0, 2.0], [3.0, np.nan]], [0, 1], "features"),
        ([[1.0], [2.0]], [0.0, np.nan], "labels"),
        ([[1.0], [2.0]], np.array([None, "a"], dtype=object), "labels"),
        ([[1.0], [2.0]], [1, 1], "labels"),
        (np.zeros((0, 2)), [], "features"),
    ],
)
def test_bad_arrays_are_refused(features, labels, parameter):
    with raises_code("invalid-input", parameter):
        Classification.of(features, labels)


@pytest.mark.parametrize(
    "pays", [0.1, [0.01, 0.1], (0.1,), (-0.1, 0.2), (0.1, float("nan")), (0.0, True), (0.2, 0.1)]
)
def test_other_payments_are_refused(pays, tmp_path):
    with raises_code("invalid-input"):
        Classification.of(FEATURES, LABELS, pays=pays)
    with raises_code("invalid-input"):
        Classification(written(tmp_path / "table.csv"), pays=pays)


@pytest.mark.parametrize("pays", ["[[0.01, 0.10]]", "[0.01, 0.10]", "[[0.01, 0.10], [0, 1]]"])
def test_in_an_experiment_file_two_payments_are_one_configuration(tmp_path, pays):
    written(tmp_path / "rows.csv")
    file = tmp_path / "own.toml"
    file.write_text(
        'observations = 30\npolicies = ["random"]\n'
        f'[environment]\nkind = "classification"\nfile = "rows.csv"\npays = {pays}\n'
    )
    first, *others = cells(load_file(file))
    assert make_environment(first.environment).pays == (0.01, 0.1)
    assert first.labels["pays"] == "0.01x0.1"
    assert [make_environment(one.environment).pays for one in others] == [(0.0, 1.0)] * len(others)
