"""Decisions by steppers are those of the contract, one by one and in blocks."""

from dataclasses import dataclass

import numpy as np
import pytest

from submax.core.policy import WrapperPolicy
from submax.environments.arms import Bernoulli
from submax.policies import make_policy
from submax.policies.thompson import Thompson
from submax.simulation.simulate import Timed, simulate

STEPPING = ("thompson-1-9", "rcp-submax", "ucb1", "kl-ucb", "moss", "epsilon-greedy-0.1")


@dataclass(frozen=True)
class WithoutStepper(WrapperPolicy):
    policy: object = None

    def stepper(self, problem, replicas, rng):
        return None


@dataclass(frozen=True)
class Doubtful(Thompson):
    """Overrides ``update``, so that the inherited stepper would learn something else."""

    def update(self, state, feedback, rng):
        return state


def require_same_traces(policies, environment, **settings):
    first, *others = (simulate(environment, one, points=None, **settings) for one in policies)
    for trace in others:
        for one, two in zip(first, trace, strict=True):
            assert np.array_equal(one, two)


@pytest.mark.parametrize(
    "policy", [*map(make_policy, STEPPING), Doubtful()], ids=[*STEPPING, "another update"]
)
def test_steps_are_the_decisions_of_the_contract_to_the_last_bit(policy, seed):
    policies = (policy, WithoutStepper(policy), Timed(policy))
    settings = {"observations": 150, "replicas": 3, "seed": seed}
    require_same_traces(policies, Bernoulli(6, 1, 4), **settings)


@pytest.mark.parametrize(
    ("name", "replicas", "observations"),
    [("rcp-submax", 3, 500), ("thompson-1-1", 50, 600)],
)
def test_decisions_that_are_computed_together_are_those_of_single_steps(
    name, replicas, observations, seed
):
    """Long enough for blocks of several lengths, with arms that are guessed wrong for ever."""
    policy, settings = make_policy(name), {"observations": observations, "replicas": replicas}
    require_same_traces(
        (policy, WithoutStepper(policy)), Bernoulli.of([0.5] * 3), seed=seed, **settings
    )


def test_a_measured_policy_decides_as_one_that_is_not():
    policy = make_policy("rcp-adaptive")
    timed = Timed(policy)
    require_same_traces((policy, timed), Bernoulli(6, 1, 4), observations=300, replicas=2)
    assert timed.deciding > 0
    assert timed.learning > 0
