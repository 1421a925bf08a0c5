import numpy as np
import pytest

from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.estimators.softmax import Softmax
from submax.networks import state_file
from submax.networks.state_file import MOVED, read_state, state_bytes
from submax.policies import make_policy
from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned
from submax.schema.columns import Columns
from submax.schema.menu import Menu
from submax.schema.model import Model, hash_of
from submax.schema.schema import Schema
from submax.testing.rules.examples import some_feedback

BEFORE = {now: before for before, now in MOVED.items()}


@pytest.fixture
def earlier(monkeypatch):
    """What is written is written as by the version before classes moved."""
    name = state_file._name
    monkeypatch.setattr(state_file, "_name", lambda value: BEFORE.get(name(value), name(value)))


def test_a_model_of_an_earlier_version_is_read(earlier):
    policy = make_policy("rcp-submax")
    rows = Columns(
        np.zeros((4, 0), np.float32), np.array([[0.0], [1], [1], [0]]), np.ones(4), np.zeros(4)
    )
    model = Model.fitted(Schema(menu=Menu.of(["A", "B"])), policy, [rows], seed=0)
    data = model.to_bytes()
    assert b"submax.live.model:Model" in data
    assert b"submax.live.model:Standardization" in data
    again = Model.from_bytes(data, hash_of(data), policy)
    assert again.shown == model.shown
    np.testing.assert_array_equal(again.standardization.mean, model.standardization.mean)


def test_rows_of_an_earlier_version_are_read(earlier):
    rows = Columns(np.ones((3, 2), np.float32), np.zeros((3, 1)), np.arange(3.0), np.zeros(3))
    data = state_bytes(rows, {})
    assert b"submax.live.log.training_rows:Columns" in data
    again, _ = read_state(data)
    assert isinstance(again, Columns)
    assert again.hash == rows.hash


def test_a_network_of_an_earlier_version_is_read(earlier, seed):
    policy, problem = RewardConditioned(next(Softmax.examples())), Problem(Arms(3))
    rng = np.random.default_rng(seed)
    state = policy.init(problem, 1, rng)
    state = policy.update(state, some_feedback(problem, 1, 20, seed), rng)
    data = state_bytes(state, {})
    assert b"submax.estimators.network_estimator:NetworkParams" in data
    again, _ = read_state(data)
    context = np.zeros((1, 1, 0))
    found, expected = (policy.probabilities(one, context) for one in (again, state))
    np.testing.assert_array_equal(found, expected)
