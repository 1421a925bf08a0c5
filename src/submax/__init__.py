"""submax: bandit decisions by reward-conditioned policies and generalized marginalization."""

import importlib
from typing import TYPE_CHECKING, Any

from submax._version import __version__

if TYPE_CHECKING:
    from submax import client as client
    from submax import environments as environments
    from submax import estimators as estimators
    from submax import evaluation as evaluation
    from submax import gymnasium as gymnasium
    from submax import plots as plots
    from submax import policies as policies
    from submax import simulation as simulation
    from submax import sklearn as sklearn
    from submax import strategies as strategies
    from submax import testing as testing
    from submax.core.conditioning.belief import Belief as Belief
    from submax.core.conditioning.estimator import Estimator as Estimator
    from submax.core.conditioning.listed_belief import ListedBelief as ListedBelief
    from submax.core.conditioning.strategy import Strategy as Strategy
    from submax.core.conditioning.strategy_facts import StrategyFacts as StrategyFacts
    from submax.core.conditioning.table import Table as Table
    from submax.core.conditioning.weighted_strategy import WeightedStrategy as WeightedStrategy
    from submax.core.contracts.chosen_actions import ChosenActions as ChosenActions
    from submax.core.contracts.context_ignored_warning import (
        ContextIgnoredWarning as ContextIgnoredWarning,
    )
    from submax.core.contracts.environment import Environment as Environment
    from submax.core.contracts.facts import Facts as Facts
    from submax.core.contracts.feedback import Feedback as Feedback
    from submax.core.contracts.listing_policy import ListingPolicy as ListingPolicy
    from submax.core.contracts.policy import Policy as Policy
    from submax.core.contracts.problem import Problem as Problem
    from submax.core.contracts.stepper import Stepper as Stepper
    from submax.core.contracts.wrapper_policy import WrapperPolicy as WrapperPolicy
    from submax.core.errors import ConflictError as ConflictError
    from submax.core.errors import InputError as InputError
    from submax.core.errors import MissingExtraError as MissingExtraError
    from submax.core.errors import NotFoundError as NotFoundError
    from submax.core.errors import StoreError as StoreError
    from submax.core.errors import SubmaxError as SubmaxError
    from submax.core.memory.memory import Memory as Memory
    from submax.core.memory.training import Training as Training
    from submax.core.rewards.binary import Binary as Binary
    from submax.core.rewards.continuous import Continuous as Continuous
    from submax.core.rewards.counts import Counts as Counts
    from submax.core.rewards.discrete import Discrete as Discrete
    from submax.core.running.fallback import FallbackWarning as FallbackWarning
    from submax.core.running.stored import stored as stored
    from submax.core.spaces.arms import Arms as Arms
    from submax.core.spaces.box import Box as Box
    from submax.core.spaces.mixed import Mixed as Mixed
    from submax.core.spaces.slots import Slots as Slots
    from submax.environments.arms.bernoulli import Bernoulli as Bernoulli
    from submax.environments.arms.few_good import FewGood as FewGood
    from submax.environments.arms.gaussian import Gaussian as Gaussian
    from submax.environments.arms.heavy_tailed import HeavyTailed as HeavyTailed
    from submax.environments.arms.poisson import Poisson as Poisson
    from submax.environments.arms.ratings import Ratings as Ratings
    from submax.environments.changing.drifting_bernoulli import (
        DriftingBernoulli as DriftingBernoulli,
    )
    from submax.environments.changing.retiring_bernoulli import (
        RetiringBernoulli as RetiringBernoulli,
    )
    from submax.environments.changing.switching_bernoulli import (
        SwitchingBernoulli as SwitchingBernoulli,
    )
    from submax.environments.linear.described_arms import DescribedArms as DescribedArms
    from submax.environments.linear.linear_contextual import LinearContextual as LinearContextual
    from submax.environments.linear.logistic_contextual import (
        LogisticContextual as LogisticContextual,
    )
    from submax.environments.networks.bump import Bump as Bump
    from submax.environments.networks.combinatorial import Combinatorial as Combinatorial
    from submax.environments.networks.contextual import Contextual as Contextual
    from submax.environments.networks.drifting_contextual import (
        DriftingContextual as DriftingContextual,
    )
    from submax.environments.networks.pricing import Pricing as Pricing
    from submax.environments.slates.cascade import Cascade as Cascade
    from submax.environments.slates.dueling import Dueling as Dueling
    from submax.environments.slates.position_clicks import PositionClicks as PositionClicks
    from submax.environments.tables.adversarial import Adversarial as Adversarial
    from submax.environments.tables.classification import Classification as Classification
    from submax.environments.tables.designs import Designs as Designs
    from submax.environments.tables.recorded_rewards import RecordedRewards as RecordedRewards
    from submax.live.bandits.bandit import Bandit as Bandit
    from submax.live.bandits.open import open_bandit as open  # noqa: A004, F401 - submax.open
    from submax.live.declaring.guard_rails import GuardRails as GuardRails
    from submax.live.fitting.learning_warning import LearningWarning as LearningWarning
    from submax.live.monitoring.lift.lift_report import LiftReport as LiftReport
    from submax.live.operating.guard_rail_warning import GuardRailWarning as GuardRailWarning
    from submax.live.serving.late_rewards import LateRewardWarning as LateRewardWarning
    from submax.live.serving.unknown_decision_warning import (
        UnknownDecisionWarning as UnknownDecisionWarning,
    )
    from submax.policies import make_policy as make_policy
    from submax.schema.context_schema import Category as Category
    from submax.schema.context_schema import Number as Number
    from submax.simulation.batch_flush import BatchFlush as BatchFlush
    from submax.simulation.identify import identify as identify
    from submax.simulation.lag import Lag as Lag
    from submax.simulation.random_delays.geometric import Geometric as Geometric
    from submax.simulation.random_delays.pareto import Pareto as Pareto
    from submax.simulation.simulate import simulate as simulate
    from submax.strategies.observation_weights import ObservationWeights as ObservationWeights
    from submax.web.server.client.async_client import AsyncClient as AsyncClient
    from submax.web.server.client.client import Client as Client

_HOME = {
    "Adversarial": "submax.environments.tables.adversarial",
    "Arms": "submax.core.spaces.arms",
    "AsyncClient": "submax.web.server.client.async_client",
    "Bandit": "submax.live.bandits.bandit",
    "BatchFlush": "submax.simulation.batch_flush",
    "Belief": "submax.core.conditioning.belief",
    "Bernoulli": "submax.environments.arms.bernoulli",
    "Binary": "submax.core.rewards.binary",
    "Box": "submax.core.spaces.box",
    "Bump": "submax.environments.networks.bump",
    "Cascade": "submax.environments.slates.cascade",
    "Category": "submax.schema.context_schema",
    "ChosenActions": "submax.core.contracts.chosen_actions",
    "Classification": "submax.environments.tables.classification",
    "Client": "submax.web.server.client.client",
    "Combinatorial": "submax.environments.networks.combinatorial",
    "ConflictError": "submax.core.errors",
    "ContextIgnoredWarning": "submax.core.contracts.context_ignored_warning",
    "Contextual": "submax.environments.networks.contextual",
    "Continuous": "submax.core.rewards.continuous",
    "Counts": "submax.core.rewards.counts",
    "DescribedArms": "submax.environments.linear.described_arms",
    "Designs": "submax.environments.tables.designs",
    "Discrete": "submax.core.rewards.discrete",
    "DriftingBernoulli": "submax.environments.changing.drifting_bernoulli",
    "DriftingContextual": "submax.environments.networks.drifting_contextual",
    "Dueling": "submax.environments.slates.dueling",
    "Environment": "submax.core.contracts.environment",
    "Estimator": "submax.core.conditioning.estimator",
    "Facts": "submax.core.contracts.facts",
    "FallbackWarning": "submax.core.running.fallback",
    "Feedback": "submax.core.contracts.feedback",
    "FewGood": "submax.environments.arms.few_good",
    "Gaussian": "submax.environments.arms.gaussian",
    "GuardRailWarning": "submax.live.operating.guard_rail_warning",
    "Geometric": "submax.simulation.random_delays.geometric",
    "GuardRails": "submax.live.declaring.guard_rails",
    "HeavyTailed": "submax.environments.arms.heavy_tailed",
    "InputError": "submax.core.errors",
    "Lag": "submax.simulation.lag",
    "LateRewardWarning": "submax.live.serving.late_rewards",
    "LearningWarning": "submax.live.fitting.learning_warning",
    "LiftReport": "submax.live.monitoring.lift.lift_report",
    "LinearContextual": "submax.environments.linear.linear_contextual",
    "ListedBelief": "submax.core.conditioning.listed_belief",
    "ListingPolicy": "submax.core.contracts.listing_policy",
    "LogisticContextual": "submax.environments.linear.logistic_contextual",
    "Memory": "submax.core.memory.memory",
    "MissingExtraError": "submax.core.errors",
    "Mixed": "submax.core.spaces.mixed",
    "NotFoundError": "submax.core.errors",
    "Number": "submax.schema.context_schema",
    "ObservationWeights": "submax.strategies.observation_weights",
    "Pareto": "submax.simulation.random_delays.pareto",
    "Poisson": "submax.environments.arms.poisson",
    "Policy": "submax.core.contracts.policy",
    "PositionClicks": "submax.environments.slates.position_clicks",
    "Pricing": "submax.environments.networks.pricing",
    "Problem": "submax.core.contracts.problem",
    "Ratings": "submax.environments.arms.ratings",
    "RecordedRewards": "submax.environments.tables.recorded_rewards",
    "RetiringBernoulli": "submax.environments.changing.retiring_bernoulli",
    "Slots": "submax.core.spaces.slots",
    "Stepper": "submax.core.contracts.stepper",
    "StoreError": "submax.core.errors",
    "Strategy": "submax.core.conditioning.strategy",
    "StrategyFacts": "submax.core.conditioning.strategy_facts",
    "SubmaxError": "submax.core.errors",
    "SwitchingBernoulli": "submax.environments.changing.switching_bernoulli",
    "Table": "submax.core.conditioning.table",
    "Training": "submax.core.memory.training",
    "UnknownDecisionWarning": "submax.live.serving.unknown_decision_warning",
    "WeightedStrategy": "submax.core.conditioning.weighted_strategy",
    "WrapperPolicy": "submax.core.contracts.wrapper_policy",
    "identify": "submax.simulation.identify",
    "make_policy": "submax.policies",
    "open": "submax.live.bandits.open",
    "simulate": "submax.simulation.simulate",
    "stored": "submax.core.running.stored",
}
"""Where each public name lives; it is imported when it is first used, so that starting is fast."""

_INSIDE = {"open": "open_bandit"}
"""Names that are another word inside, since Python has its own."""

_PARTS = (
    "client",
    "environments",
    "estimators",
    "evaluation",
    "plots",
    "policies",
    "simulation",
    "strategies",
    "testing",
)
_OPTIONAL_PARTS = ("gymnasium", "sklearn")
"""Parts that need an extra; they are not among the names that ``import *`` brings."""

__all__ = [*_HOME, *_PARTS, "__version__"]


def __getattr__(name: str) -> Any:
    if name in (*_PARTS, *_OPTIONAL_PARTS):
        return importlib.import_module(f"submax.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), _INSIDE.get(name, name))
    raise AttributeError(f"module 'submax' has no attribute {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    """Return where a name is that ``submax`` does not have; empty if nothing is similar."""
    if name.startswith("_"):
        return ""
    from submax.core.running.missing_name import hint_for  # imported for mistakes only

    return hint_for(name, [*_HOME, *_PARTS])


def __dir__() -> list[str]:
    return sorted(__all__)
