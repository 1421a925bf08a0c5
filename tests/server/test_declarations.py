"""Bandits are declared over HTTP with whatever a declaration may have, and decide and learn."""

import dataclasses
import typing
from types import UnionType

import pytest
from refusals import raises_code

from submax.estimators import ESTIMATORS
from submax.policies import POLICIES
from submax.schema.rewards import SCALES
from submax.server.limits import FREE, LIMITS, OTHERS, check_parameters
from submax.strategies import STRATEGIES


def nested(path, value):
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


@pytest.mark.parametrize(
    ("path", "limit"),
    [
        ("policy.strategy.depth", LIMITS["depth"]),
        ("policy.policy.estimator.training.steps", LIMITS["steps"]),
        ("policy.estimator.parameters.n_estimators", OTHERS),
        ("policy.a_parameter_of_a_plugin", OTHERS),
        ("rewards.bin_edges", LIMITS["bin_edges"]),
    ],
)
def test_a_number_up_to_the_limit_is_allowed_and_a_larger_one_is_not(path, limit):
    for allowed in (limit, -limit, 0.5, True, "fitted", None):
        check_parameters(nested(path, allowed))
    for refused in (limit + 1, -limit - 1, [0, 2 * limit], {"x": 10**30}):
        with raises_code("invalid-input"):
            check_parameters(nested(path, refused))


def numeric_fields(cls, seen):
    """The names of all fields with numbers, also those of dataclasses within."""
    if cls in seen:
        return
    seen.add(cls)
    for name, hint in typing.get_type_hints(cls).items():
        if name not in {field.name for field in dataclasses.fields(cls)}:
            continue
        for part in parts(hint):
            if part in (int, float):
                yield name
            elif dataclasses.is_dataclass(part) and isinstance(part, type):
                yield from numeric_fields(part, seen)


def parts(hint):
    """All types of a union or a collection, however deep."""
    origin = typing.get_origin(hint)
    if origin in (typing.Union, UnionType, tuple, list):
        return [one for each in typing.get_args(hint) for one in parts(each)]
    return [hint]


def test_every_number_that_can_be_declared_has_a_limit():
    classes = [
        *(
            registry.find(name)
            for registry in (POLICIES, ESTIMATORS, STRATEGIES)
            for name in registry.homes
        ),
        *SCALES.values(),
    ]
    names = {name for cls in classes for name in numeric_fields(cls, set())}
    assert len(names) > 30
    assert names <= {*FREE, *LIMITS}
