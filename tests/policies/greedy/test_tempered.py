"""Variants of policies with another temperature."""

import numpy as np
import pytest
from refusals import raises_code

import submax
from submax import Arms, Feedback, Problem
from submax.policies import Tempered


def feedback(seed: int) -> Feedback:
    rng = np.random.default_rng(seed)
    action = rng.integers(3, size=(1, 200, 1))
    reward = (rng.random((1, 200)) < 0.2 + 0.2 * action[..., 0]) * 1.0
    return Feedback(np.zeros((1, 200, 0)), action, reward, None, np.ones((1, 200)))


@pytest.mark.parametrize("temperature", [0.0, 0.25, 1.0, 4.0])
def test_probabilities_are_powers_of_those_of_the_policy(temperature, seed):
    policy = submax.make_policy("thompson-1-1")
    tempered = Tempered(policy, temperature)
    rng = np.random.default_rng(seed)
    state = tempered.update(tempered.init(Problem(Arms(3)), 1, rng), feedback(seed), rng)
    base = policy.probabilities(state, np.zeros((1, 1, 0)))
    found = tempered.probabilities(state, np.zeros((1, 1, 0)))
    if temperature:
        expected = base ** (1 / temperature)
        assert found == pytest.approx(expected / expected.sum())
    else:
        assert found[0, 0].tolist() == (base[0, 0] == base.max()).astype(float).tolist()


def test_a_table_makes_it():
    table = {"kind": "tempered", "policy": "thompson-1-1", "temperature": 0.5}
    assert submax.make_policy(table) == Tempered(submax.make_policy("thompson-1-1"), 0.5)


def test_a_negative_temperature_is_refused():
    with raises_code("invalid-input", "temperature"):
        Tempered(submax.make_policy("thompson-1-1"), -1.0)
