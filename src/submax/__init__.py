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
    from submax.environments.arms import Poisson as Poisson
    from submax.environments.arms import Ratings as Ratings
    from submax.environments.arms import SparseBernoulli as SparseBernoulli
    from submax.environments.changing import DriftingBernoulli as DriftingBernoulli
    from submax.environments.changing import SwitchingBernoulli as SwitchingBernoulli
    from submax.environments.contextual import Combinatorial as Combinatorial
    from submax.environments.contextual import Contextual as Contextual
    from submax.environments.contextual import DisjointContextual as DisjointContextual
    from submax.environments.contextual import DriftingContextual as DriftingContextual
    from submax.environments.contextual import LogisticContextual as LogisticContextual
    from submax.environments.tables import Classification as Classification
    from submax.models.memory import Memory as Memory
    from submax.models.training_settings import Training as Training
    from submax.policies import make_policy as make_policy
    from submax.schema.context import Category as Category
    from submax.schema.context import Number as Number
    from submax.simulation.delays import BatchedRewards as BatchedRewards
    from submax.simulation.delays import Geometric as Geometric
    from submax.simulation.delays import Lag as Lag
    from submax.simulation.delays import Pareto as Pareto
    from submax.simulation.simulate import simulate as simulate

_NAMES = {
    "bandit.bandit": "Bandit",
    "bandit.decision": "LiftReport UnknownDecisionWarning",
    "bandit.durable": "open",
    "bandit.guard_rails": "GuardRailWarning GuardRails",
    "bandit.learning": "LearningWarning",
    "bandit.rewards": "LateRewardWarning",
    "client.client": "AsyncClient Client",
    "core.conditioning": "Belief Estimator Strategy StrategyRequirements "
    "Table TabularBelief WeightedStrategy",
    "core.environment": "Environment",
    "core.errors": "ConflictError ContextIgnoredWarning Error FallbackWarning "
    "InputError MissingExtraError NotFoundError StoreError",
    "core.policy": "Policy PolicyTraits TabularPolicy WrapperPolicy",
    "core.problem": "ChosenActions Feedback Problem",
    "core.rewards": "Binary Continuous Counts Discrete",
    "core.serialization": "serializable",
    "core.spaces": "Arms Box Mixed Slots",
    "environments.arms": "Bernoulli Gaussian Poisson Ratings SparseBernoulli",
    "environments.changing": "DriftingBernoulli SwitchingBernoulli",
    "environments.contextual": "Combinatorial Contextual DisjointContextual DriftingContextual "
    "LogisticContextual",
    "environments.tables": "Classification",
    "models.memory": "Memory",
    "models.training_settings": "Training",
    "policies": "make_policy",
    "schema.context": "Category Number",
    "simulation.delays": "BatchedRewards Geometric Lag Pareto",
    "simulation.simulate": "simulate",
}
"""The public names of each module, which is imported when one of them is first used."""
_HOME = {name: f"submax.{module}" for module, names in _NAMES.items() for name in names.split()}

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
