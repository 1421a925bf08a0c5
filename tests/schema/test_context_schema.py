import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_code

from submax.schema.context import (
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
    (encoded,) = BOTH.encode([BOTH.clean({"age": age, "country": country})])
    assert encoded.tolist() == [*(float(one == country) for one in COUNTRIES), age]
    assert encoded.dtype == np.float64
    assert BOTH.width == len(encoded)
    assert BOTH.numeric == [False, False, False, True]


NUMBERS = (float, int, bool, "number", "float", Number(), {}, {"type": "number"}, {"default": None})
CATEGORIES = (
    COUNTRIES,
    tuple(COUNTRIES),
    Category(tuple(COUNTRIES)),
    {"values": COUNTRIES},
    {"type": "category", "values": COUNTRIES},
)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        *((one, Number()) for one in NUMBERS),
        *((one, Category(tuple(COUNTRIES))) for one in CATEGORIES),
    ],
    ids=repr,
)
def test_a_field_is_declared_in_several_ways(given, field):
    assert ContextSchema.of({"field": given}) == ContextSchema(("field",), (field,))


def test_nothing_declared_takes_nothing():
    schema = ContextSchema.of(None)
    assert schema.clean(None) == schema.clean({}) == []
    assert schema.encode([[]]).shape == (1, 0)
    with raises_code("invalid-input"):
        schema.clean({"age": 3})


@pytest.mark.parametrize("value", ["es", None, 1, ["fr"]])
def test_what_is_missing_or_unknown_is_the_default_where_there_is_one(value):
    country = ContextSchema.of({"country": Category(("fr", "us"), default="us")})
    assert country.clean({"country": value}) == country.clean({}) == country.clean(None) == ["us"]
    age = ContextSchema.of({"age": {"default": 40}})
    assert age.clean({}) == age.clean({"age": None}) == [40.0]
    with raises_code("invalid-input", "age"):
        age.clean({"age": "old"})


@pytest.mark.parametrize(
    ("context", "parameter"),
    [
        *(
            ({"country": "fr", "age": value}, "age")
            for value in ("31", None, math.nan, -math.inf, 10**400, 2 * LARGEST, [31], 1j)
        ),
        *(
            ({"country": value, "age": 31}, "country")
            for value in ("", None, 1, ["fr"], "fr\x00", "x" * 100_000)
        ),
        *(
            ({"country": "fr", "age": 31, stranger: 1}, str(stranger)[:60])
            for stranger in ("weather", 5, None, ("a", "b"), "x" * 100_000)
        ),
        # A misspelt field is named before the one that is missing.
        ({"contry": "fr"}, "contry"),
        (None, BOTH.names[0]),
        (5, "context"),
        ([("country", "fr")], "context"),
    ],
    ids=lambda given: f"{given!r:.60}",
)
def test_a_wrong_context_is_refused_in_a_short_line(context, parameter):
    with raises_code("invalid-input", parameter) as refused:
        BOTH.clean(context)
    assert len(str(refused.value)) < 500
    many = ContextSchema.of({f"field {number}": float for number in range(100)})
    with raises_code("invalid-input", "field 0") as refused:
        many.clean(None)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("context", "parameter"),
    [
        (["age"], "context"),
        ({"age": None}, "age"),
        ({"age": str}, "age"),
        ({5: float}, None),
        ({"": float}, None),
        ({"a\x00": float}, None),
        ({"country": []}, "country"),
        ({"country": ["fr", "fr"]}, "country"),
        ({"country": ["fr", ["de"]]}, None),
        ({"country": {"values": "fr"}}, "country"),
        ({"country": {"values": ["fr"], "default": "de"}}, "country"),
        ({"country": {"values": ["fr"], "type": "number"}}, "country"),
        ({"country": {"type": "category"}}, "country"),
        ({"country": {"values": ["fr"], "more": 1}}, None),
        ({"age": {"default": "old"}}, "age"),
        ({"age": Number(default=10**400)}, None),
        ({"age": Number(default=1e300)}, "age"),
        ({"age": Number(default=True)}, None),
        ({"country": Category("fr")}, "country"),
        ({"country": [str(number) for number in range(MOST_CATEGORIES + 1)]}, "country"),
        ({str(number): float for number in range(MOST_FIELDS + 1)}, "context"),
    ],
    ids=lambda given: f"{given!r:.40}",
)
def test_a_declaration_that_makes_no_sense_is_refused(context, parameter):
    with raises_code("invalid-input", parameter):
        ContextSchema.of(context)


def test_an_unknown_category_is_kept_and_encoded_as_none_of_them():
    values = BOTH.clean({"country": "es", "age": 31})
    assert (values, BOTH.unknown(values)) == (["es", 31.0], ["country"])
    assert BOTH.encode([values, ["us", 1.0]]).tolist() == [[0, 0, 0, 31], [0, 0, 1, 1]]


WIDER = {"country": [*COUNTRIES, "es"], "age": float, "device": ["phone"], "visits": float}


def test_columns_that_are_added_come_last_so_an_older_model_takes_the_first_ones():
    wider = BOTH.extended(ContextSchema.of(WIDER))
    wider = wider.extended(ContextSchema.of({**WIDER, "country": [*COUNTRIES, "es", "it"]}))
    context = {"country": "it", "age": 31, "device": "phone", "visits": 5}
    for country in [*COUNTRIES, "es", "it", "pt"]:
        values = wider.clean({**context, "country": country})
        (encoded,) = wider.encode([values])
        assert encoded[: BOTH.width].tolist() == BOTH.encode([values[:2]])[0].tolist()
        # es, phone, visits, it
        assert encoded[BOTH.width :].tolist() == [country == "es", 1, 5, country == "it"]
    assert wider.numeric == [False, False, False, True, False, False, True, False]
    assert msgspec.json.decode(msgspec.json.encode(wider), type=ContextSchema) == wider


def test_earlier_rows_have_the_default_of_a_field_that_is_added():
    wanted = {"country": COUNTRIES, "age": float, "device": ["phone"], "visits": Number(7.0)}
    wider = BOTH.extended(ContextSchema.of(wanted))
    before = BOTH.encode([["de", 31.0]])
    values = wider.with_missing(["de", 31.0])
    assert values == wider.clean({"country": "de", "age": 31.0})
    assert wider.widened(before).tolist() == wider.encode([values]).tolist()


@pytest.mark.parametrize(
    "wanted",
    [{"country": COUNTRIES}, {"country": COUNTRIES[1:], "age": float}, {**WIDER, "age": ["old"]}],
    ids=["without a field", "without a category", "another kind"],
)
def test_nothing_can_be_taken_from_a_context(wanted):
    with raises_code("invalid-input", "context"):
        BOTH.extended(ContextSchema.of(wanted))
