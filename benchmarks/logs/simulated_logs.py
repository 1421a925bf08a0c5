"""Logs of 20 arms with rare rewards, and policies that learned from earlier rows by counting."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.evaluation.estimators import Evidence

ARMS, ROWS, FOLDS = 20, 10_000, 3
"""A log has 20,000 rows: policies learn from the first half, and the second half evaluates them."""
SPREAD = 0.7
"""Standard deviation of the logarithms of the arms' rates."""
COMMON_RATE = 0.3
"""A rate at which intervals must not be wider without need."""


class SimulatedLog(NamedTuple):
    """The rates of the arms, and the evidence of the second half about each policy by name."""

    rates: Floats
    policies: dict[str, Floats]
    evidence: dict[str, Evidence]

    def truth(self, policy: str) -> float:
        """Return the expected reward of a policy."""
        return float(self.policies[policy] @ self.rates)


def simulated_logs(rate: float, uniform: bool, logs: int, seed: int) -> Iterator[SimulatedLog]:
    """Yield logs whose mean reward is about ``rate``; other logs than uniform ones prefer arms."""
    rng = np.random.default_rng([seed, round(rate * 1e6), int(uniform)])
    for _ in range(logs):
        rates = np.minimum(rate * np.exp(rng.normal(-(SPREAD**2) / 2, SPREAD, ARMS)), 0.9)
        propensity = np.full(ARMS, 1 / ARMS)
        if not uniform:
            propensity = 0.9 * rng.dirichlet(np.ones(ARMS)) + 0.1 / ARMS
        policies = _policies(*_rows(propensity, rates, rng), rate)
        arm, reward = _rows(propensity, rates, rng)
        fold = rng.integers(FOLDS, size=ROWS)
        models = [_model(arm[fold != number], reward[fold != number]) for number in range(FOLDS)]
        model = np.stack(models)
        evidence = {
            name: Evidence(
                reward=reward,
                weight=(policy / propensity)[arm],
                probability=policy[arm],
                predicted=model[fold, arm],
                expected=(model @ policy)[fold],
                bounds=(0.0, 1.0),
            )
            for name, policy in policies.items()
        }
        yield SimulatedLog(rates, policies, evidence)


def _rows(propensity: Floats, rates: Floats, rng: np.random.Generator) -> tuple[Integers, Floats]:
    arm = rng.choice(ARMS, ROWS, p=propensity)
    return arm, (rng.random(ROWS) < rates[arm]) * 1.0


def _policies(arm: Integers, reward: Floats, rate: float) -> dict[str, Floats]:
    """Return policies that were learned from rows by counting; each takes more arms than the last.

    `greedy` takes one arm, `epsilon` another one in a tenth of its decisions, `submax` is the rule
    of the paper, `softmax` prefers arms by their mean reward.
    """
    taken = np.bincount(arm, minlength=ARMS)
    earned = np.bincount(arm, weights=reward, minlength=ARMS)
    mean = (earned + 0.5) / (taken + 0.5 / rate)
    greedy = np.eye(ARMS)[np.argmax(mean)]
    high, low = (count / count.sum() for count in (earned + 0.1, taken - earned + 0.1))
    submax, softmax = np.maximum(high - low, 0.0), np.exp(mean / rate)
    return {
        "greedy": greedy,
        "epsilon": 0.9 * greedy + 0.1 / ARMS,
        "submax": submax / submax.sum(),
        "softmax": softmax / softmax.sum(),
    }


def _model(arm: Integers, reward: Floats) -> Floats:
    """Return the mean reward of every arm, shrunk to that of all arms."""
    taken = np.bincount(arm, minlength=ARMS)
    earned = np.bincount(arm, weights=reward, minlength=ARMS)
    mean = max(float(reward.mean()), 1e-4)
    found: Floats = (earned + 1.0) / (taken + 1.0 / mean)
    return found
