from dataclasses import replace

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace as altered
from refusals import raises_code
from safetensors.numpy import save

from submax.core.serialization import read_state, state_bytes
from submax.evaluation.learning import learn
from submax.evaluation.log import Log
from submax.schema import trained_policy as limits_of
from submax.schema.actions import Change
from submax.schema.model import Model
from submax.schema.rows import Columns
from submax.schema.trained_policy import TrainedPolicy


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    action = rng.integers(2, size=(50, 2))
    reward = (rng.random(50) < 0.3 + 0.2 * action[:, 0]) * 1.0
    return Log.from_arrays(action, reward, context=rng.normal(size=(50, 2)))


@pytest.fixture(scope="module")
def linucb(log):
    return learn(log, "linucb")


def refused(data):
    with raises_code("invalid-input") as error:
        TrainedPolicy.from_bytes(data, "the file")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("wanted", "limits", "kept"),
    [
        (7, {}, 7),
        (99, {}, 50),
        (20, {"MOST_ROWS": 9}, 9),
        (20, {"MOST_NUMBERS": 21}, 10),
        (20, {"MOST_NUMBERS": 1}, 0),
    ],
)
def test_the_newest_rows_are_kept_as_far_as_there_is_room(log, wanted, limits, kept, monkeypatch):
    for name, limit in limits.items():
        monkeypatch.setattr(limits_of, name, limit)
    rows = learn(log, "linucb", keep_rows=wanted).rows
    assert rows.hash == Columns.joined(list(log.parts)).rows(slice(50 - kept, None)).hash


def test_files_that_are_damaged_or_something_else_are_refused(log, linucb, tmp_path):
    data = linucb.to_bytes()
    for broken in (b"", b"no policy", data[: len(data) // 2], data[:-1], b"\xff" * 100):
        refused(broken)
    refused(save({"x": np.zeros(3)}))
    refused(Model.fresh(log.schema, linucb.policy, 0).to_bytes())
    with raises_code("invalid-input"):
        TrainedPolicy.read(tmp_path / "none.safetensors")


@pytest.mark.parametrize("without", ["schema", "origin", "policy"])
def test_a_file_of_another_version_is_refused(linucb, without):
    facts = read_state(linucb.to_bytes(), facts_only=True)[1]["learned"]
    del facts[without]
    refused(state_bytes((linucb.model, linucb.rows), {"learned": facts}))
    refused(state_bytes((linucb.model, linucb.rows), {"learned": 3}))


@pytest.mark.parametrize(
    "policy",
    ["linucb", "rcp-submax", {"kind": "thompson", "alpha": 2}, "hill-climbing-thompson"],
)
def test_what_was_written_is_read_back(log, policy, tmp_path):
    learned = learn(log, policy, share=0.6, by="random", seed=3, keep_rows=20)
    (tmp_path / "policy.safetensors").write_bytes(b"something else, which is replaced")
    learned.write(tmp_path / "policy.safetensors")
    again = TrainedPolicy.read(str(tmp_path / "policy.safetensors"))
    context = log.parts[0].context
    np.testing.assert_array_equal(again.probabilities(context), learned.probabilities(context))
    assert (again.schema, again.specification) == (learned.schema, learned.specification)
    assert again.origin == learned.origin
    assert again.rows.hash == learned.rows.hash
    assert again.policy == learned.policy
    assert again.to_bytes() == learned.to_bytes()
    assert [file.name for file in tmp_path.iterdir()] == ["policy.safetensors"]


def with_changes(log, *changes):
    """A log as a bandit wrote it that had these choices paused or retired."""
    menu = log.schema.menu
    for change in changes:
        menu = menu.changed(change)
    return replace(log, schema=altered(log.schema, menu=menu))


def test_probabilities_are_those_of_all_choices_and_zero_where_one_is_not_active():
    rng = np.random.default_rng(1)
    action = np.stack([rng.integers(3, size=90), rng.integers(4, size=90)], axis=1)
    log = Log.from_arrays(action, rng.integers(2, size=90), context=rng.normal(size=(90, 1)))
    log = with_changes(log, Change("retire", "1", "slot0"), Change("pause", "0", "slot1"))
    learned = learn(log, "linear-thompson")
    context = log.parts[0].context
    table = learned.probabilities(context).reshape(90, 3, 4)
    seen = learned.model.standardization.apply(context.astype(np.float64))
    said = learned.policy.probabilities(learned.model.state, seen[None])[0]
    np.testing.assert_array_equal(table[:, [0, 2]][:, :, [1, 2, 3]].reshape(90, 6), said)
    assert not table[:, 1].any()
    assert not table[:, :, 0].any()
    again = TrainedPolicy.from_bytes(learned.to_bytes(), "the file")
    assert again.schema == learned.schema
    np.testing.assert_array_equal(again.probabilities(context), learned.probabilities(context))


OWN = """
from dataclasses import dataclass
from pathlib import Path
from submax.policies.epsilon_greedy import Random

Path(__file__).with_name("was-run").touch()

@dataclass(frozen=True)
class Own(Random):
    pass
"""


def written_with(learned, **facts):
    """The bytes of a learned policy whose file says something else."""
    told = {"schema": learned.schema, "policy": learned.specification, "origin": learned.origin}
    told = msgspec.to_builtins({**told, **facts})
    return state_bytes((learned.model, learned.rows), {"learned": told})


@pytest.mark.parametrize(
    "table",
    [
        lambda kind: {"kind": kind},
        lambda kind: {"kind": "reward-conditioned", "estimator": {"kind": kind}},
        lambda kind: {"kind": "gridded", "policy": kind},
        lambda kind: {"kind": "gridded", "policy": {"kind": "gridded", "cells": [kind]}},
        lambda kind: kind,
    ],
)
def test_a_policy_of_a_file_is_not_run_by_reading(linucb, tmp_path, table):
    (tmp_path / "own.py").write_text(OWN)
    refused(written_with(linucb, policy=table(f"{tmp_path / 'own.py'}:Own")))
    assert not (tmp_path / "was-run").exists()


def test_a_policy_of_a_file_is_read_with_trust(log, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    learned = learn(log, {"kind": f"{tmp_path / 'own.py'}:Own"})
    learned.write(tmp_path / "policy.safetensors")
    with raises_code("invalid-input"):
        TrainedPolicy.read(tmp_path / "policy.safetensors")
    again = TrainedPolicy.read(tmp_path / "policy.safetensors", trust=True)
    assert again.policy == learned.policy


def with_menu(schema, **changes):
    return altered(schema, menu=altered(schema.menu, **changes))


def with_slot(schema, **changes):
    first, *others = schema.menu.slots
    return with_menu(schema, slots=(altered(first, **changes), *others))


def with_context(schema, **changes):
    return altered(schema, context=altered(schema.context, **changes))


SCHEMAS = {
    "empty slot": lambda one: with_slot(one, choices=()),
    "no slot": lambda one: with_menu(one, slots=()),
    "choice named twice": lambda one: with_slot(one, choices=one.menu.slots[0].choices[:1] * 2),
    "slot named twice": lambda one: with_slot(one, name=one.menu.slots[1].name),
    "slot without a name": lambda one: with_slot(one, name=""),
    "no active choice": lambda one: with_slot(
        one, choices=tuple(altered(each, status="paused") for each in one.menu.slots[0].choices)
    ),
    "other choices active": lambda one: with_menu(
        one, slots=one.menu.changed(Change("pause", "1", "slot0")).slots
    ),
    "field named twice": lambda one: with_context(one, names=("x0", "x0")),
    "field without a name": lambda one: with_context(one, names=("x0",)),
    "fewer fields": lambda one: with_context(one, names=("x0",), fields=one.context.fields[:1]),
    "unknown rewards": lambda one: altered(one, rewards={"kind": "none"}),
    "other rewards": lambda one: altered(one, rewards={"kind": "counts"}),
}


@pytest.mark.parametrize("wrong", list(SCHEMAS))
def test_a_schema_that_could_not_be_declared_is_refused(linucb, wrong):
    refused(written_with(linucb, schema=SCHEMAS[wrong](linucb.schema)))


@pytest.mark.parametrize("policy", ["none", {"kind": "none"}, 3, {"no": "kind"}], ids=repr)
def test_a_policy_that_is_not_known_is_refused(linucb, policy):
    refused(written_with(linucb, policy=policy))


CONTENTS = {
    "nothing": lambda model, rows: None,
    "the other way round": lambda model, rows: (rows, model),
    "narrow context": lambda model, rows: (model, rows._replace(context=rows.context[:, :1])),
    "short rewards": lambda model, rows: (model, rows._replace(reward=rows.reward[1:])),
    "one slot": lambda model, rows: (model, rows._replace(action=rows.action[:, 0])),
    "words": lambda model, rows: (model, rows._replace(log_prob=["a", ["b"]])),
    "whole numbers": lambda model, rows: (model, rows._replace(reward=rows.reward.astype(int))),
    "unknown action": lambda model, rows: (model, rows._replace(action=rows.action + 1)),
    "no action": lambda model, rows: (model, rows._replace(action=rows.action * np.nan)),
    "infinite context": lambda model, rows: (model, rows._replace(context=rows.context * np.inf)),
    "unknown reward": lambda model, rows: (model, rows._replace(reward=rows.reward + 0.5)),
    "narrow mean": lambda model, rows: (
        model._replace(
            standardization=model.standardization._replace(mean=model.standardization.mean[:1])
        ),
        rows,
    ),
    "no standardization": lambda model, rows: (model._replace(standardization=None), rows),
    "no state": lambda model, rows: (model._replace(state=None), rows),
    "state of another problem": lambda model, rows: (
        model._replace(state=model.state._replace(problem=np.zeros(2))),
        rows,
    ),
    "state of wrong shapes": lambda model, rows: (
        model._replace(
            state=model.state._replace(roots=tuple(one[:0] for one in model.state.roots))
        ),
        rows,
    ),
}


@pytest.mark.parametrize("wrong", list(CONTENTS))
def test_contents_that_do_not_fit_the_schema_are_refused(linucb, wrong):
    facts = read_state(linucb.to_bytes(), facts_only=True)[1]
    refused(state_bytes(CONTENTS[wrong](linucb.model, linucb.rows), facts))
