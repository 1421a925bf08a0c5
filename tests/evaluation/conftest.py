import re

import numpy as np
import pytest
from postgres_server import postgres, postgres_address  # noqa: F401 - fixtures

from submax.core.numerics import draw
from submax.evaluation.estimators import Evidence
from submax.evaluation.log import trajectory_weights

LOGS, ROWS, CONTEXTS, ACTIONS, SLOTS = 2000, 50, 3, 3, 3
SESSION_ROWS = 4


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def mentioned():
    def check(sentences, *facts):
        """Whether one line of these sentences has all these facts: names, numbers, counts."""
        patterns = [rf"(?<![\w.]){re.escape(str(fact))}(?!\w|\.\d)" for fact in facts]
        lines = [line for one in sentences for line in one.splitlines()]
        return any(all(re.search(one, line) for one in patterns) for line in lines)

    return check


@pytest.fixture
def evidence_of():
    def make(seed, rows=50):
        """Evidence of arbitrary numbers: the formulas hold for all of them."""
        rng = np.random.default_rng(seed)
        probability = rng.uniform(0.0, 1.0, rows)
        weight = probability / rng.uniform(0.05, 1.0, rows)
        return Evidence(
            reward=rng.normal(1.0, 2.0, rows),
            weight=weight,
            probability=probability,
            predicted=rng.normal(1.0, 1.0, rows),
            expected=rng.normal(1.0, 1.0, rows),
            slot_weight=rng.gamma(1.0, 1.0, (rows, SLOTS)),
            sessions=trajectory_weights(weight, np.arange(rows) // SESSION_ROWS),
        )

    return make


def two_policies(rng, rows):
    """A logging policy that takes all actions with some probability, and another policy."""
    logged, policy = rng.dirichlet(np.ones(ACTIONS), size=(2, rows))
    return 0.7 * logged + 0.3 / ACTIONS, policy


@pytest.fixture
def logs_of_arms():
    def make(seed, support=True):
        """Logs with rewards of 0 and 1 and a q̂ of noise, and the value of the policy."""
        rng = np.random.default_rng(seed)
        logged, policy = two_policies(rng, CONTEXTS)
        if not support:
            logged[:, 0] = 0.0
            logged /= logged.sum(axis=1, keepdims=True)
            policy = 0.5 * policy + 0.5 * np.eye(ACTIONS)[0]
        truth, guess = rng.uniform(0.0, 1.0, (2, CONTEXTS, ACTIONS))
        x = rng.integers(CONTEXTS, size=(LOGS, ROWS))
        a = draw(logged[x], ROWS, rng)
        columns = (
            (rng.random((LOGS, ROWS)) < truth[x, a]) * 1.0,
            policy[x, a] / logged[x, a],
            policy[x, a],
            guess[x, a],
            (policy * guess).sum(axis=1)[x],
        )
        value = (policy * truth).sum(axis=1).mean()
        return [Evidence(*one) for one in zip(*columns, strict=True)], value

    return make


@pytest.fixture
def logs_of_slots():
    def make(seed, together=0.0):
        """Logs of slots whose effects add up, but for what two do ``together``; and the value."""
        rng = np.random.default_rng(seed)
        logged, policy = two_policies(rng, SLOTS)
        effect, slot = rng.normal(0.0, 1.0, (SLOTS, ACTIONS)), np.arange(SLOTS)
        a = draw(np.tile(logged, (LOGS * ROWS, 1, 1)), SLOTS, rng).reshape(LOGS, ROWS, SLOTS)
        reward = effect[slot, a].sum(axis=2) + rng.normal(0.0, 1.0, (LOGS, ROWS))
        reward += together * np.all(a[:, :, :2] == 0, axis=2)
        slot_weight = (policy / logged)[slot, a]
        weight, unused = slot_weight.prod(axis=2), np.zeros((LOGS, ROWS))
        columns = reward, weight, unused, unused, unused, slot_weight
        value = (policy * effect).sum() + together * policy[0, 0] * policy[1, 0]
        return [Evidence(*one) for one in zip(*columns, strict=True)], value

    return make


@pytest.fixture
def rare_evidence():
    def make(rng, rate, rows=1500, arms=10):
        """Evidence of a uniform log about a policy that takes one arm often; and its value."""
        arm = rng.integers(arms, size=rows)
        policy = np.full(arms, 0.5 / arms) + 0.5 * np.eye(arms)[0]
        rates = rate * np.linspace(0.5, 1.5, arms)
        reward = (rng.random(rows) < rates[arm]) * 1.0
        weight = (policy * arms)[arm]
        model = np.full(arms, rate)
        evidence = Evidence(
            reward, weight, policy[arm], model[arm], np.full(rows, rate), bounds=(0.0, 1.0)
        )
        return evidence, float(policy @ rates)

    return make
