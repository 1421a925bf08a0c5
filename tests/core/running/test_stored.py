from dataclasses import dataclass
from typing import NamedTuple

import pytest
from refusals import raises_code

from submax.core.running import stored as module
from submax.core.running.stored import class_of, stored, tag_of


@pytest.fixture(autouse=True)
def no_new_tags(monkeypatch):
    """Tags that a test gives are forgotten after it."""
    monkeypatch.setattr(module, "_CLASSES", dict(module._CLASSES))
    monkeypatch.setattr(module, "_TAGS", dict(module._TAGS))


class Pair(NamedTuple):
    one: int
    other: int


@dataclass(frozen=True)
class Point:
    x: float = 0.0


@pytest.mark.parametrize("record", [Pair(1, 2), Point()])
def test_a_tag_leads_to_its_class_and_back(record):
    assert stored("some-tag")(type(record)) is type(record)
    assert tag_of(record) == "some-tag"
    assert class_of("some-tag", {}) is type(record)


def test_a_second_class_with_the_same_tag_is_refused_and_the_first_one_keeps_it():
    stored("some-tag")(Pair)
    with raises_code("invalid-input"):
        stored("some-tag")(Point)
    assert class_of("some-tag", {}) is Pair


def test_a_class_that_is_defined_again_takes_its_tag_over():
    first = stored("some-tag")(Pair)
    again = stored("some-tag")(type("Pair", (Point,), {"__qualname__": "Pair"}))
    assert first is not again
    assert class_of("some-tag", {}) is again


def test_a_class_of_the_users_own_is_known_by_its_name():
    assert tag_of(Point()) == "own:Point"
    assert class_of("own:Point", {"Point": Point}) is Point
    with raises_code("invalid-input"):
        class_of("own:Point", {})


def test_a_class_of_submax_without_a_tag_is_refused():
    untagged = type("Untagged", (), {"__module__": "submax.somewhere"})
    with raises_code("invalid-input"):
        tag_of(untagged())


def test_an_unknown_tag_is_refused():
    with raises_code("invalid-input"):
        class_of("nothing", {})
