"""submax: bandit decisions by reward-conditioned policies and generalized marginalization."""

import importlib
import sys
from typing import TYPE_CHECKING, Any

from submax._version import __version__

if TYPE_CHECKING:
    from submax import client as client
    from submax import environments as environments
    from submax import estimators as estimators
    from submax import evaluation as evaluation
    from submax import policies as policies
    from submax import research as research
    from submax import simulation as simulation
    from submax import strategies as strategies
    from submax import testing as testing
    from submax.bandit.bandit import Bandit as Bandit
    from submax.bandit.decision import LiftReport as LiftReport
    from submax.bandit.decision import UnknownDecisionWarning as UnknownDecisionWarning
    from submax.bandit.durable import open_bandit as open  # noqa: A004, F401 - submax.open
    from submax.bandit.guard_rails import GuardRails as GuardRails
    from submax.bandit.guard_rails import GuardRailWarning as GuardRailWarning
    from submax.bandit.learning import LearningWarning as LearningWarning
    from submax.bandit.rewards import LateRewardWarning as LateRewardWarning
    from submax.client.client import AsyncClient as AsyncClient
    from submax.client.client import Client as Client
    from submax.core.conditioning import Belief as Belief
    from submax.core.conditioning import Estimator as Estimator
    from submax.core.conditioning import Strategy as Strategy
    from submax.core.conditioning import StrategyRequirements as StrategyRequirements
    from submax.core.conditioning import Table as Table
    from submax.core.conditioning import TabularBelief as TabularBelief
    from submax.core.conditioning import WeightedStrategy as WeightedStrategy
    from submax.core.environment import Environment as Environment
    from submax.core.errors import ConflictError as ConflictError
    from submax.core.errors import ContextIgnoredWarning as ContextIgnoredWarning
    from submax.core.errors import Error as Error
    from submax.core.errors import FallbackWarning as FallbackWarning
    from submax.core.errors import InputError as InputError
    from submax.core.errors import MissingExtraError as MissingExtraError
    from submax.core.errors import NotFoundError as NotFoundError
    from submax.core.errors import StoreError as StoreError
    from submax.core.policy import Policy as Policy
    from submax.core.policy import PolicyTraits as PolicyTraits
    from submax.core.policy import TabularPolicy as TabularPolicy
    from submax.core.policy import WrapperPolicy as WrapperPolicy
    from submax.core.problem import ChosenActions as ChosenActions
    from submax.core.problem import Feedback as Feedback
    from submax.core.problem import Problem as Problem
    from submax.core.rewards import Binary as Binary
    from submax.core.rewards import Continuous as Continuous
    from submax.core.rewards import Counts as Counts
    from submax.core.rewards import Discrete as Discrete
    from submax.core.serialization import serializable as serializable
    from submax.core.spaces import Arms as Arms
    from submax.core.spaces import Box as Box
    from submax.core.spaces import Mixed as Mixed
    from submax.core.spaces import Slots as Slots
    from submax.environments.arms import Bernoulli as Bernoulli
    from submax.environments.arms import Gaussian as Gaussian
    from submax.environments.arms import HeavyTailed as HeavyTailed
    from submax.environments.arms import Poisson as Poisson
    from submax.environments.arms import Ratings as Ratings
    from submax.environments.arms import SparseBernoulli as SparseBernoulli
    from submax.environments.changing import DriftingBernoulli as DriftingBernoulli
    from submax.environments.changing import RetiringBernoulli as RetiringBernoulli
    from submax.environments.changing import SwitchingBernoulli as SwitchingBernoulli
    from submax.environments.contextual import Combinatorial as Combinatorial
    from submax.environments.contextual import Contextual as Contextual
    from submax.environments.contextual import DriftingContextual as DriftingContextual
    from submax.environments.designs import Designs as Designs
    from submax.environments.linear import DescribedArms as DescribedArms
    from submax.environments.linear import LinearContextual as LinearContextual
    from submax.environments.linear import LogisticContextual as LogisticContextual
    from submax.environments.tables import Classification as Classification
    from submax.environments.tables import RecordedRewards as RecordedRewards
    from submax.models.memory import Memory as Memory
    from submax.models.training import Training as Training
    from submax.policies import make_policy as make_policy
    from submax.schema.context import Category as Category
    from submax.schema.context import Number as Number
    from submax.simulation.delays import BatchedRewards as BatchedRewards
    from submax.simulation.delays import Geometric as Geometric
    from submax.simulation.delays import Lag as Lag
    from submax.simulation.delays import Pareto as Pareto
    from submax.simulation.simulate import simulate as simulate
    from submax.strategies.tracking import ObservationWeights as ObservationWeights

_HOME = {
    "Arms": "submax.core.spaces",
    "AsyncClient": "submax.client.client",
    "Bandit": "submax.bandit.bandit",
    "BatchedRewards": "submax.simulation.delays",
    "Belief": "submax.core.conditioning",
    "Bernoulli": "submax.environments.arms",
    "Binary": "submax.core.rewards",
    "Box": "submax.core.spaces",
    "Category": "submax.schema.context",
    "ChosenActions": "submax.core.problem",
    "Classification": "submax.environments.tables",
    "Client": "submax.client.client",
    "Combinatorial": "submax.environments.contextual",
    "ConflictError": "submax.core.errors",
    "ContextIgnoredWarning": "submax.core.errors",
    "Contextual": "submax.environments.contextual",
    "Continuous": "submax.core.rewards",
    "Counts": "submax.core.rewards",
    "DescribedArms": "submax.environments.linear",
    "Designs": "submax.environments.designs",
    "Discrete": "submax.core.rewards",
    "DriftingBernoulli": "submax.environments.changing",
    "DriftingContextual": "submax.environments.contextual",
    "Environment": "submax.core.environment",
    "Estimator": "submax.core.conditioning",
    "PolicyTraits": "submax.core.policy",
    "FallbackWarning": "submax.core.errors",
    "Feedback": "submax.core.problem",
    "SparseBernoulli": "submax.environments.arms",
    "Gaussian": "submax.environments.arms",
    "GuardRailWarning": "submax.bandit.guard_rails",
    "Geometric": "submax.simulation.delays",
    "GuardRails": "submax.bandit.guard_rails",
    "HeavyTailed": "submax.environments.arms",
    "InputError": "submax.core.errors",
    "Lag": "submax.simulation.delays",
    "LateRewardWarning": "submax.bandit.rewards",
    "LearningWarning": "submax.bandit.learning",
    "LiftReport": "submax.bandit.decision",
    "LinearContextual": "submax.environments.linear",
    "TabularBelief": "submax.core.conditioning",
    "TabularPolicy": "submax.core.policy",
    "LogisticContextual": "submax.environments.linear",
    "Memory": "submax.models.memory",
    "MissingExtraError": "submax.core.errors",
    "Mixed": "submax.core.spaces",
    "NotFoundError": "submax.core.errors",
    "Number": "submax.schema.context",
    "ObservationWeights": "submax.strategies.tracking",
    "Pareto": "submax.simulation.delays",
    "Poisson": "submax.environments.arms",
    "Policy": "submax.core.policy",
    "Problem": "submax.core.problem",
    "Ratings": "submax.environments.arms",
    "RecordedRewards": "submax.environments.tables",
    "RetiringBernoulli": "submax.environments.changing",
    "Slots": "submax.core.spaces",
    "StoreError": "submax.core.errors",
    "Strategy": "submax.core.conditioning",
    "StrategyRequirements": "submax.core.conditioning",
    "Error": "submax.core.errors",
    "SwitchingBernoulli": "submax.environments.changing",
    "Table": "submax.core.conditioning",
    "Training": "submax.models.training",
    "UnknownDecisionWarning": "submax.bandit.decision",
    "WeightedStrategy": "submax.core.conditioning",
    "WrapperPolicy": "submax.core.policy",
    "make_policy": "submax.policies",
    "open": "submax.bandit.durable",
    "simulate": "submax.simulation.simulate",
    "serializable": "submax.core.serialization",
}
"""The module of each public name; it is imported when the name is first used."""

_INSIDE = {"open": "open_bandit"}
"""Public names that differ inside, because they would shadow a builtin."""

_PARTS = (
    "client",
    "environments",
    "estimators",
    "evaluation",
    "policies",
    "research",
    "simulation",
    "strategies",
    "testing",
)

__all__ = [*_HOME, *_PARTS, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return importlib.import_module(f"submax.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), _INSIDE.get(name, name))
    # With name and obj, Python's traceback suggests the nearest name.
    raise AttributeError(
        f"module 'submax' has no attribute {name!r}", name=name, obj=sys.modules[__name__]
    )


def __dir__() -> list[str]:
    return sorted(__all__)
