import re
from fractions import Fraction

import numpy as np
import pytest
from refusals import raises_code

from submax.core.checks import at_least, non_negative, one_of, positive, probability, whole_number
from submax.core.errors import InputError

NOT_NUMBERS = [True, False, None, "1", [1], 1j]
NOT_FINITE = [float("nan"), float("inf"), -float("inf"), np.float64("nan")]


@pytest.mark.parametrize("value", [0, 5, np.int64(3), 10**30])
def test_whole_numbers_pass(value):
    whole_number("count", value, at_least=0)


@pytest.mark.parametrize("value", [-1, 1.0, np.float64(2), Fraction(3, 2), *NOT_NUMBERS])
def test_other_values_are_no_whole_numbers(value):
    with raises_code("invalid-input", "count"):
        whole_number("count", value, at_least=0)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (positive, [1e-300, 1, np.float32(2), Fraction(1, 3)], [0, 0.0, -1e-300]),
        (non_negative, [0, 0.0, 7.5], [-1e-300, -1]),
        (probability, [0, 1, 0.5, np.float64(1.0)], [-1e-9, 1 + 1e-9, 2]),
    ],
)
def test_ranges(check, good, bad):
    for value in good:
        check("size", value)
    for value in [*bad, *NOT_NUMBERS, *NOT_FINITE]:
        with raises_code("invalid-input", "size"):
            check("size", value)


def test_a_number_is_not_below_its_limit():
    for value in (0.05, 1, np.float64(3.5)):
        at_least("alpha", value, 0.05)
    for value in [0.049, 0, -1, *NOT_NUMBERS, *NOT_FINITE]:
        with raises_code("invalid-input", "alpha"):
            at_least("alpha", value, 0.05)


def test_an_unknown_word_gets_the_nearest_suggested():
    one_of("policy", "ucb1", ["ucb1", "random"])
    with raises_code("invalid-input", "policy"):
        one_of("policy", "ubc1", ["ucb1", "random"])
    with raises_code("invalid-input", "policy"):
        one_of("policy", "zzz", ["ucb1", "random"])
    with raises_code("invalid-input", "key"):
        one_of("key", "x", [])


def test_many_words_are_not_all_listed():
    words = [f"word-{number:03}" for number in range(500)]
    with raises_code("invalid-input", "key") as refusal:
        one_of("key", "x", words)
    assert len(str(refusal.value)) < 300
    with pytest.raises(InputError) as refusal:
        one_of("key", "word-00", words, listed_by="which a page lists")
    assert re.fullmatch(
        r"unknown key 'word-00': did you mean 'word-\d00', 'word-\d00' or 'word-\d00'\? "
        r"allowed: one of 500, which a page lists",
        str(refusal.value),
    )
