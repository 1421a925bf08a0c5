"""Every number that a class takes is checked, and the error names the parameter."""

import dataclasses
from typing import get_type_hints

import pytest
from builtin_examples import examples
from refusals import raises_code

from submax.environments import ENVIRONMENTS
from submax.estimators import ESTIMATORS
from submax.policies import (
    POLICIES,
    EpsilonGreedy,
    LinearThompson,
    NeuralEpsilonGreedy,
    Thompson,
)
from submax.simulation import DELAYS
from submax.strategies import STRATEGIES

KINDS = [
    pytest.param(registry, kind, id=kind)
    for registry in (POLICIES, STRATEGIES, ESTIMATORS, ENVIRONMENTS, DELAYS)
    for kind in registry.homes
    # Measured designs are made of columns.
    if kind != "designs"
]


@pytest.mark.parametrize(("registry", "kind"), KINDS)
def test_what_is_no_number_of_its_kind_is_refused(registry, kind):
    example = next(examples(registry, kind))
    hints = get_type_hints(type(example))
    for field in dataclasses.fields(example):
        kind = hints[field.name]
        if kind not in (int, float):
            continue
        # The numbers of environments may be negative, such as a shift.
        below = [] if registry is ENVIRONMENTS else [-1]
        broken = [1.5] if kind is int else []
        for value in (float("nan"), "1", True, *below, *broken):
            with raises_code("invalid-input", field.name):
                dataclasses.replace(example, **{field.name: value})


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (EpsilonGreedy, "epsilon", 1.01),
        (LinearThompson, "draws", 4097),
        (LinearThompson, "draws", 0),
        (LinearThompson, "width", 0.0),
        (LinearThompson, "width", float("inf")),
        (NeuralEpsilonGreedy, "dropout", 1.0),
        (NeuralEpsilonGreedy, "hidden", 1.5),
        (Thompson, "alpha", 0.04),
    ],
)
def test_numbers_beyond_their_limits_are_refused(kind, name, value):
    with raises_code("invalid-input", name):
        kind(**{name: value})
