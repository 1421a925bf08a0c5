"""Environments: distributions over hidden worlds, in which policies are simulated."""

from typing import Any

from submax.core.environment import Environment
from submax.core.optional import lazy_names
from submax.core.registry import Registry

ENVIRONMENTS: Registry[Environment[Any]] = Registry(
    "submax.environments",
    Environment,  # type: ignore[type-abstract]  # a contract is abstract
    "environment",
    {
        "adversarial": "submax.research.beyond.adversarial:Adversarial",
        "bernoulli": "submax.environments.arms:Bernoulli",
        "smooth-reward": "submax.research.beyond.real_valued:SmoothReward",
        "cascade": "submax.research.beyond.slates:Cascade",
        "classification": "submax.environments.tables:Classification",
        "combinatorial": "submax.environments.contextual:Combinatorial",
        "contextual": "submax.environments.contextual:Contextual",
        "designs": "submax.research.beyond.designs:Designs",
        "disjoint-contextual": "submax.environments.contextual:DisjointContextual",
        "drifting-bernoulli": "submax.environments.changing:DriftingBernoulli",
        "drifting-contextual": "submax.environments.contextual:DriftingContextual",
        "dueling": "submax.research.beyond.duels:Dueling",
        "gaussian": "submax.environments.arms:Gaussian",
        "logistic-contextual": "submax.environments.contextual:LogisticContextual",
        "poisson": "submax.environments.arms:Poisson",
        "pricing": "submax.research.beyond.real_valued:Pricing",
        "ratings": "submax.environments.arms:Ratings",
        "sleeping-bernoulli": "submax.environments.changing:SleepingBernoulli",
    },
)

__all__ = ["ENVIRONMENTS", *ENVIRONMENTS.class_names()]
__getattr__, __dir__ = lazy_names(__name__, ENVIRONMENTS.modules(), __all__)
