from dataclasses import replace

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace as altered
from refusals import raises_code
from safetensors.numpy import save

from submax.core.serialization import hashed_bytes, state_bytes
from submax.evaluation import Log, learn
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
    return Log.read({"action": action, "reward": reward, "context": rng.normal(size=(50, 2))})


@pytest.fixture(scope="module")
def linucb(log):
    return learn(log, "linucb")


@pytest.fixture
def refused(tmp_path):
    def refused(data):
        (tmp_path / "refused.safetensors").write_bytes(data)
        with raises_code("invalid-input") as error:
            TrainedPolicy.read(tmp_path / "refused.safetensors")
        assert "\n" not in str(error.value)

    return refused


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


def test_files_that_are_damaged_or_something_else_are_refused(log, linucb, tmp_path, refused):
    data = linucb.to_bytes()
    for broken in (b"", b"no policy", data[: len(data) // 2], data[:-1], b"\xff" * 100):
        refused(broken)
    refused(save({"x": np.zeros(3)}))
    refused(Model.fitted(log.schema, linucb.policy, [], 0).to_bytes())
    with raises_code("invalid-input"):
        TrainedPolicy.read(tmp_path / "none.safetensors")


@pytest.mark.parametrize(
    "changed",
    [
        {"schema": None},
        {"origin": None},
        *({"policy": one} for one in (None, "none", 3, {"no": "kind"})),
    ],
    ids=repr,
)
def test_a_file_of_another_version_is_refused(linucb, changed, refused):
    refused(written_with(linucb, **changed))
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


def test_probabilities_are_those_of_all_choices_and_zero_where_one_is_not_active(tmp_path):
    rng = np.random.default_rng(1)
    action = np.stack([rng.integers(3, size=90), rng.integers(4, size=90)], axis=1)
    log = Log.read(
        {"action": action, "reward": rng.integers(2, size=90), "context": rng.normal(size=(90, 1))}
    )
    # As a bandit wrote it that had one choice retired and another paused.
    menu = log.schema.menu.changed(Change("retire", "1", "slot0"))
    menu = menu.changed(Change("pause", "0", "slot1"))
    log = replace(log, schema=altered(log.schema, menu=menu))
    learned = learn(log, "linear-thompson")
    context = log.parts[0].context
    table = learned.probabilities(context).reshape(90, 3, 4)
    seen = learned.model.standardization.apply(context.astype(np.float64))
    said = learned.policy.probabilities(learned.model.state, seen[None])[0]
    np.testing.assert_array_equal(table[:, [0, 2]][:, :, [1, 2, 3]].reshape(90, 6), said)
    assert not table[:, 1].any()
    assert not table[:, :, 0].any()
    learned.write(tmp_path / "policy.safetensors")
    again = TrainedPolicy.read(tmp_path / "policy.safetensors")
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
    return hashed_bytes((learned.model, learned.rows), "learned", told)


@pytest.mark.parametrize(
    "table",
    [
        lambda kind: {"kind": kind},
        lambda kind: {"kind": "reward-conditioned", "estimator": {"kind": kind}},
        lambda kind: {"kind": "gridded", "policy": kind},
        lambda kind: {"kind": "gridded", "policy": {"kind": "gridded", "cells": [kind]}},
        lambda kind: kind,
        lambda kind: f"{kind},epsilon=0.1@greedy",
        lambda kind: {"kind": "gridded", "policy": f"{kind}@greedy"},
        lambda kind: f"trees-greedy,regressor={kind.partition(':')[0]}.Own",
        lambda kind: {"kind": "gridded", "policy": "trees-greedy,regressor=own.Own"},
    ],
)
def test_a_policy_of_a_file_is_not_run_by_reading(linucb, tmp_path, table, refused):
    (tmp_path / "own.py").write_text(OWN)
    refused(written_with(linucb, policy=table(f"{tmp_path / 'own.py'}:Own")))
    assert not (tmp_path / "was-run").exists()
