import pickle

import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.errors import MissingExtraError
from submax.core.running import extras
from submax.core.spaces.arms import Arms
from submax.environments.tables.classification import Classification
from submax.environments.tables.packaged_set import LOADERS, is_packaged, load_packaged
from submax.testing import check_environment

SHAPES = {
    "sklearn:breast_cancer": (569, 30, 2),
    "sklearn:digits": (1797, 64, 10),
    "sklearn:iris": (150, 4, 3),
    "sklearn:wine": (178, 13, 3),
}


@pytest.fixture
def datasets():
    return pytest.importorskip("sklearn.datasets")


def test_every_set_is_tested():
    assert SHAPES.keys() == LOADERS.keys()


@pytest.mark.parametrize("name", SHAPES)
def test_rows_are_those_of_the_package(name, datasets):
    bunch = getattr(datasets, LOADERS[name])()
    features, labels = load_packaged(name)
    assert np.array_equal(features, bunch.data)
    assert np.array_equal(labels, bunch.target)
    rows, width, classes = SHAPES[name]
    environment = Classification(name, standardize=False)
    assert np.array_equal(environment.rows.features, bunch.data)
    assert environment.classes.tolist() == list(range(classes)) == sorted(set(bunch.target))
    assert environment.problem == Problem(Arms(classes), width)
    assert len(features) == rows


@pytest.mark.parametrize("name", SHAPES)
def test_features_are_standardized_as_the_package_would(name, datasets):
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    data = getattr(datasets, LOADERS[name])().data
    expected = preprocessing.StandardScaler().fit_transform(data)
    assert np.allclose(Classification(name).rows.features, expected)


@pytest.mark.parametrize("name", SHAPES)
def test_the_right_label_pays(name, datasets):
    target = getattr(datasets, LOADERS[name])().target
    environment = Classification(name)
    context = environment.rows.features[None]
    assert np.all(environment.mean_reward(1, context, target[None, :, None]) == 1)
    wrong = (target + 1) % len(environment.classes)
    assert np.all(environment.mean_reward(1, context, wrong[None, :, None]) == 0)
    assert np.all(environment.best_reward(1, context) == 1)


def test_it_keeps_the_contract_of_environments(datasets):
    check_environment(Classification("sklearn:iris"))


def test_a_pickled_copy_is_equal(datasets):
    environment = Classification("sklearn:wine")
    restored = pickle.loads(pickle.dumps(environment))
    assert restored == environment
    assert np.array_equal(restored.rows.features, environment.rows.features)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sklearn:digit", r"unknown data set 'sklearn:digit': did you mean 'sklearn:digits'\?"),
        ("sklaern:wine", "did you mean 'sklearn:wine', "),
        ("sklearn:", "allowed: sklearn:breast_cancer, sklearn:digits"),
        ("digits", r"must end in \.csv or \.parquet, not 'digits'"),
        ("sklearn:digits.csv", r"there is no file 'sklearn:digits\.csv'"),
        ("folder/sklearn:digits", r"must end in \.csv or \.parquet"),
    ],
)
def test_a_wrong_name_is_refused_at_once(name, words):
    with raises_code("invalid-input"):
        Classification(name)


def test_a_label_is_for_files(datasets):
    with raises_code("invalid-input"):
        Classification("sklearn:digits", "kind")


def test_without_the_package_the_extra_is_named_at_once(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as error:
        Classification("sklearn:digits")
    expected = 'sklearn:digits needs sklearn, not installed here: pip install "submax[data]"'
    assert str(error.value) == expected


def test_without_the_package_a_wrong_name_is_still_a_wrong_name(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with raises_code("invalid-input", "data set"):
        Classification("sklearn:digit")


def test_a_file_whose_folder_has_a_colon_is_a_file(tmp_path):
    folder = tmp_path / "12:30"
    folder.mkdir()
    file = folder / "rows.csv"
    file.write_text("x,label\n1,a\n2,b\n")
    assert not is_packaged(str(file))
    assert Classification(str(file)).classes.tolist() == ["a", "b"]
