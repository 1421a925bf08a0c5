import math
from collections.abc import Mapping

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_code

from submax.core.errors import InputError
from submax.schema.context_schema import (
    LARGEST,
    MOST_CATEGORIES,
    MOST_FIELDS,
    Category,
    ContextSchema,
    Number,
)

COUNTRIES = ["fr", "de", "us"]
BOTH = ContextSchema.of({"country": COUNTRIES, "age": float})


@given(st.sampled_from(COUNTRIES), st.floats(-1e30, 1e30))
def test_a_category_is_a_one_at_its_place_and_a_number_itself(country, age):
    encoded = BOTH.encode(BOTH.clean({"age": age, "country": country}))
    assert encoded.tolist() == [*(float(one == country) for one in COUNTRIES), age]
    assert BOTH.width == len(encoded)


def test_only_numbers_are_numeric():
    assert BOTH.numeric == [False, False, False, True]


@pytest.mark.parametrize(
    "given",
    [float, int, bool, "number", "float", Number(), {}, {"type": "number"}, {"default": None}],
    ids=repr,
)
def test_a_number_is_declared_in_several_ways(given):
    assert ContextSchema.of({"age": given}) == ContextSchema(("age",), (Number(),))


@pytest.mark.parametrize(
    "given",
    [
        COUNTRIES,
        tuple(COUNTRIES),
        Category(tuple(COUNTRIES)),
        {"values": COUNTRIES},
        {"type": "category", "values": COUNTRIES},
    ],
    ids=repr,
)
def test_a_category_is_declared_in_several_ways(given):
    declared = ContextSchema.of({"country": given})
    assert declared == ContextSchema(("country",), (Category(tuple(COUNTRIES)),))


def test_a_schema_is_the_same_after_it_was_written_and_read():
    schema = ContextSchema.of({"country": {"values": COUNTRIES, "default": "us"}, "age": float})
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(schema), type=ContextSchema) == schema


def test_nothing_declared_takes_nothing():
    schema = ContextSchema.of(None)
    assert schema.clean(None) == schema.clean({}) == []
    assert schema.encode([]).shape == (0,)
    with raises_code("invalid-input"):
        schema.clean({"age": 3})


@pytest.mark.parametrize(
    "value", ["31", None, math.nan, math.inf, -math.inf, 10**400, 2 * LARGEST, [31], {}, 1j]
)
def test_what_is_no_number_is_refused(value):
    with raises_code("invalid-input"):
        BOTH.clean({"country": "fr", "age": value})


@pytest.mark.parametrize("value", ["es", "", None, 1, ["fr"], "FR", "fr\x00", "x" * 100_000])
def test_what_is_no_category_is_refused_in_a_short_sentence(value):
    with raises_code("invalid-input") as refused:
        BOTH.clean({"country": value, "age": 31})
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("value", ["es", None, 1, ["fr"]])
def test_an_unknown_or_missing_category_is_the_default_where_there_is_one(value):
    schema = ContextSchema.of({"country": Category(("fr", "us"), default="us")})
    assert schema.clean({"country": value}) == schema.clean({}) == schema.clean(None) == ["us"]


def test_a_missing_number_is_the_default_where_there_is_one_and_a_wrong_one_is_refused():
    schema = ContextSchema.of({"age": {"default": 40}})
    assert schema.clean({}) == schema.clean({"age": None}) == [40.0]
    with raises_code("invalid-input"):
        schema.clean({"age": "old"})


def test_a_context_that_was_forgotten_is_described():
    with pytest.raises(InputError) as refused:
        BOTH.clean(None)
    assert str(refused.value) == (
        "no context was given, and country, age must have a value: pass the context, "
        "decide({'country': …, 'age': …}), or declare defaults"
    )
    assert ContextSchema.of({"age": Number(default=40.0)}).clean(None) == [40.0]
    many = ContextSchema.of({f"field {number}": float for number in range(100)})
    with raises_code("invalid-input") as refused:
        many.clean(None)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("context", [5, "fr", ["fr", 31], [("country", "fr")]])
def test_a_context_that_is_no_table_is_refused(context):
    with raises_code("invalid-input"):
        BOTH.clean(context)


@pytest.mark.parametrize("stranger", ["weather", 5, None, ("a", "b"), "x" * 100_000])
def test_a_field_that_was_not_declared_is_refused_in_a_short_sentence(stranger):
    with raises_code("invalid-input") as refused:
        BOTH.clean({"country": "fr", "age": 31, stranger: 1})
    assert len(str(refused.value)) < 500


class Pairs(Mapping):
    """A mapping that lists a key as often as it was given, and ignores the case of letters."""

    def __init__(self, *pairs):
        self.pairs = pairs

    def __getitem__(self, key):
        return next(value for name, value in self.pairs if name.lower() == key.lower())

    def __contains__(self, key):
        return any(name.lower() == key.lower() for name, _ in self.pairs)

    def __iter__(self):
        return (name for name, _ in self.pairs)

    def __len__(self):
        return len(self.pairs)


def test_a_mapping_that_is_no_dict_may_list_a_field_twice_but_no_stranger():
    schema = ContextSchema.of({"age": float, "AGE": float})
    assert schema.clean(Pairs(("age", 1.0), ("age", 2.0), ("AGE", 3.0))) == [1.0, 1.0]
    with raises_code("invalid-input"):
        schema.clean(Pairs(("age", 1.0), ("country", "fr")))


def test_a_misspelt_field_is_named_before_the_one_that_is_missing():
    with pytest.raises(InputError) as refused:
        BOTH.clean({"contry": "fr"})
    assert str(refused.value) == (
        "the context field 'contry' is not declared; did you mean 'country'? declared: country, age"
    )


@pytest.mark.parametrize(
    "context",
    [
        5,
        "age",
        ["age"],
        {"age": None},
        {"age": str},
        {"age": "text"},
        {"age": set()},
        {5: float},
        {"": float},
        {"a\x00": float},
        {"country": []},
        {"country": ["fr", "fr"]},
        {"country": ["fr", 5]},
        {"country": ["fr", ["de"]]},
        {"country": {"values": []}},
        {"country": {"values": "fr"}},
        {"country": {"values": ["fr"], "default": "de"}},
        {"country": {"values": ["fr"], "type": "number"}},
        {"country": {"type": "category"}},
        {"country": {"values": ["fr"], "more": 1}},
        {"age": {"default": "old"}},
        {"age": {"default": math.nan}},
        {"age": Number(default=10**400)},
        {"age": Number(default=1e300)},
        {"age": Number(default=True)},
        {"age": Number(default="old")},
        {"country": Category("fr")},
        {"country": [str(number) for number in range(MOST_CATEGORIES + 1)]},
        {str(number): float for number in range(MOST_FIELDS + 1)},
    ],
    ids=lambda context: f"{context!r:.40}",
)
def test_a_declaration_that_makes_no_sense_is_refused(context):
    with pytest.raises(InputError):
        ContextSchema.of(context)


def test_the_most_categories_that_are_named_are_allowed():
    names = [str(number) for number in range(MOST_CATEGORIES)]
    assert ContextSchema.of({"city": names}).width == MOST_CATEGORIES


def test_an_encoded_context_is_an_array_of_numbers():
    assert BOTH.encode(["de", 1.5]).dtype == np.float64
