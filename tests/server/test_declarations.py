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

ARMS = {"actions": ["A", "B"]}
FEATURES = {"A": {"price": 3.0, "genre": "rock"}, "B": {"price": 2, "genre": "jazz"}}
SHOP = {**ARMS, "action_features": FEATURES}
SLOTS = {
    "actions": {"title": ["A", "B"], "layout": ["wide", "narrow"]},
    "action_features": {"title": FEATURES},
}
ADD = {"verb": "add", "choice": "C", "features": {"price": 1.5, "genre": "folk"}}


@pytest.fixture(scope="module")
def server(shared_serving, shared_store):
    return shared_serving(shared_store)


@pytest.fixture
def shown(server):
    """Declare a bandit under a new name, and return the name and what the server shows of it."""

    def shown(declaration):
        name = f"bandit-{len(server.get('/bandits').json()['bandits'])}"
        answer = server.post("/bandits", json={"name": name, **declaration})
        assert answer.status_code == 201, answer.text
        return name, answer.json()

    return shown


@pytest.mark.parametrize(
    ("declaration", "value"),
    [
        ({**ARMS, "context": {"age": "number", "country": ["fr", "de"]}}, 1),
        ({"actions": {"price": [1.0, 20.0]}, "policy": "fourier-thompson"}, 1),
        ({**ARMS, "rewards": {"kind": "continuous", "low": 5}, "default_reward": None}, 6),
        ({**ARMS, "rewards": {"kind": "continuous", "low": -1e12, "high": 1e12}}, 1e9),
        ({**ARMS, "rewards": {"kind": "discrete", "values": [0, 1e9]}}, 1e9),
        ({**ARMS, "rewards": "counts", "combine": "sum", "default_reward": None}, 7),
        ({**ARMS, "reward_wait": 0, "no_reward_after": 1e9, "seed": 2**62}, 1),
        ({**ARMS, "reward_wait": 1e9, "policy": {"kind": "thompson", "beta": 1e6}}, 1),
        ({**ARMS, "guard_rails": {"burn_in": 10**6, "holdout": 0.5, "baseline": "A"}}, 1),
    ],
    ids=str,
)
def test_a_good_declaration_is_taken_decides_and_gets_rewards(server, shown, declaration, value):
    name, _ = shown(declaration)
    context = {"age": 1.0, "country": "fr"} if "context" in declaration else {}
    made = server.post(f"/bandits/{name}/decide", json={"context": context}).json()
    reward = {"id": made["id"], "value": value}
    assert server.post(f"/bandits/{name}/reward", json=reward).json()["status"] == "accepted"


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
    classes = [*POLICIES.classes(), *ESTIMATORS.classes(), *STRATEGIES.classes(), *SCALES.values()]
    names = {name for cls in classes for name in numeric_fields(cls, set())}
    assert len(names) > 30
    assert names <= {*FREE, *LIMITS}


def test_features_of_choices_are_declared_added_and_shown(server, shown):
    name, found = shown(SHOP)
    assert found == server.get(f"/bandits/{name}").json()
    assert found["actions"][""][1] == {
        "choice": "B",
        "status": "active",
        "features": {"price": 2.0, "genre": "jazz"},
    }
    server.post(f"/bandits/{name}/choices", json=ADD)
    found = server.post(f"/bandits/{name}/choices", json={"verb": "pause", "choice": "C"}).json()
    added = {"choice": "C", "status": "paused", "features": ADD["features"]}
    assert found["actions"][""][2] == added
    # Those of slots stand under the names of the slots.
    name, found = shown(SLOTS)
    assert found["actions"]["title"][0]["features"] == FEATURES["A"]
    assert found["actions"]["layout"][0] == {"choice": "wide", "status": "active"}
    added = server.post(f"/bandits/{name}/choices", json={**ADD, "slot": "title", "ramp": 9})
    assert any("'C' is new" in sentence for sentence in added.json()["notices"])
    assert added.status_code == 200
