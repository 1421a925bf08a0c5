"""Conformance suite of policies."""

import dataclasses
import pickle
from typing import Any

from submax.core.contracts.policy import Policy
from submax.testing.rules.examples import PROBLEMS, REPLICAS, SCALED, accepted
from submax.testing.rules.policy_decisions import check_decisions, check_frequencies
from submax.testing.rules.policy_densities import REAL, check_densities
from submax.testing.rules.policy_facts import check_facts
from submax.testing.rules.policy_learning import check_learning
from submax.testing.rules.require import require


def check_policy(policy: Policy[Any], seed: int = 0) -> None:
    """Raise an AssertionError where ``policy`` breaks its contract.

    It runs plain arms, joint choices, a problem with context, the scales of rewards and
    real-valued actions, fresh and after feedback, alone and over replicas.
    """
    _check_record(policy)
    for problem in PROBLEMS:
        for replicas in REPLICAS:
            check_decisions(policy, problem, replicas, seed)
            check_learning(policy, problem, replicas, seed)
        if problem.space.size > 1:
            check_frequencies(policy, problem, seed)
    for problem in accepted(policy, SCALED):
        check_decisions(policy, problem, REPLICAS[-1], seed)
        check_learning(policy, problem, REPLICAS[-1], seed)
    for problem in accepted(policy, REAL):
        check_densities(policy, problem, seed)
    check_facts(policy, seed)


def _check_record(policy: Policy[Any]) -> None:
    require(not isinstance(policy, type), policy, "give an instance of it, not the class")
    require(dataclasses.is_dataclass(policy), policy, "it must be a dataclass")
    frozen = type(policy).__dataclass_params__.frozen  # type: ignore[attr-defined]  # a dataclass has it
    require(frozen, policy, "its dataclass must be frozen")
    restored = pickle.loads(pickle.dumps(policy))
    require(restored == policy, policy, "it must be equal to its pickled copy")
