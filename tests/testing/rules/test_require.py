import re
from pathlib import Path

import numpy as np
import pytest

from submax.core.contracts.policy import Policy
from submax.estimators import Counting
from submax.policies import Thompson
from submax.testing.rules.require import (
    AXES,
    require_equal_copy,
    require_instance,
    require_shape,
    require_table_shape,
)

GLOSSARY = Path(__file__).parents[3] / "docs" / "reference" / "glossary.md"


def test_letters_are_those_of_the_glossary():
    rows = re.findall(r"^\| (\w)[^|]* \| ([^|]*) \|$", GLOSSARY.read_text("utf-8"), re.MULTILINE)
    letters = dict(rows)
    for letter, meaning in AXES.items():
        assert letter == meaning or letters[letter].startswith(meaning)


def test_a_wrong_shape_is_explained_by_its_letters():
    require_shape(np.zeros((2, 3)), "R n", (2, 3), Thompson(), "log_prob")
    with pytest.raises(
        AssertionError,
        match=r"log_prob must have shape \[R, n\] = \[2, 3\], not \[3\]; "
        r"R = 2 replicas, n = 3 decisions",
    ):
        require_shape(np.zeros(3), "R n", (2, 3), Thompson(), "log_prob")
    with pytest.raises(AssertionError, match=r"= \[2, 3\], not a list; R"):
        require_shape([1.0], "R n", (2, 3), Thompson(), "log_prob")
    require_table_shape(np.zeros((4, 2)), "L", (4, 2), Thompson(), "weights")
    with pytest.raises(
        AssertionError, match=r"weights must have shape \[..., L\] = \[4, 2\], not \[2\]; L rew"
    ):
        require_table_shape(np.zeros(2), "L", (4, 2), Thompson(), "weights")


def test_a_class_or_a_stranger_is_told_what_to_give():
    require_instance(Thompson(), Policy)
    with pytest.raises(AssertionError, match=r"the class Thompson .* give Thompson\(...\)"):
        require_instance(Thompson, Policy)
    with pytest.raises(AssertionError, match="tests instances of Policy: use check_estimator"):
        require_instance(Counting(), Policy)
    with pytest.raises(AssertionError, match=r"'random' was given, .* derives from Policy"):
        require_instance("random", Policy)


class Unlike:
    def __eq__(self, other):
        return False

    __hash__ = None


def test_an_object_that_cannot_be_pickled_is_explained():
    class Local:
        pass

    class Holds:
        def __init__(self):
            self.function = lambda: None

    Holds.__qualname__ = "Holds"
    require_equal_copy(Thompson())
    with pytest.raises(AssertionError, match="the class Local is defined inside a function: move"):
        require_equal_copy(Local())
    with pytest.raises(AssertionError, match="keep only plain values"):
        require_equal_copy(Holds())
    with pytest.raises(AssertionError, match="it must be equal to its pickled copy"):
        require_equal_copy(Unlike())
