"""Conformance suite of policies."""

import dataclasses
from typing import Any

from submax.core.contracts.policy import Policy
from submax.testing.rules.examples import accepted, cases, problems_of
from submax.testing.rules.policy_decisions import check_decisions, check_frequencies
from submax.testing.rules.policy_densities import REAL, check_densities
from submax.testing.rules.policy_eligibility import check_eligibility
from submax.testing.rules.policy_facts import check_facts
from submax.testing.rules.policy_learning import check_learning
from submax.testing.rules.policy_steps import check_steps
from submax.testing.rules.require import (
    on_problem,
    require,
    require_equal_copy,
    require_instance,
)


def check_policy(policy: Policy[Any], seed: int = 0) -> None:
    """Raise an AssertionError if ``policy`` breaks its contract.

    The problems are arms, slots, arms with a context, all reward scales and real-valued actions,
    each before and after feedback, with one replica and with several. A policy that says it needs
    pairs of the same arms is tested on these instead.
    """
    _check_record(policy)
    for problem, replicas in cases(policy):
        with on_problem(policy, problem):
            taught = check_decisions(policy, problem, replicas, seed)
            check_learning(policy, problem, replicas, seed, taught)
            check_steps(policy, problem, replicas, seed)
            if replicas > 1 and problem.space.size > 1 and problem in problems_of(policy):
                check_frequencies(policy, problem, seed)
                check_eligibility(policy, problem, replicas, seed, taught)
    for problem in accepted(policy, REAL):
        with on_problem(policy, problem):
            check_densities(policy, problem, seed)
    check_facts(policy, seed)


def _check_record(policy: Policy[Any]) -> None:
    require_instance(policy, Policy)
    require(dataclasses.is_dataclass(policy), policy, "it must be a dataclass")
    frozen = type(policy).__dataclass_params__.frozen  # type: ignore[attr-defined]  # a dataclass has it
    require(frozen, policy, "its dataclass must be frozen")
    require_equal_copy(policy)
