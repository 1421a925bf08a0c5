"""Environments: distributions over hidden worlds, in which policies are simulated."""

from typing import Any

from submax.core.contracts.environment import Environment
from submax.core.registry import Registry

ENVIRONMENTS: Registry[Environment[Any]] = Registry(
    "submax.environments",
    Environment,  # type: ignore[type-abstract]  # a contract is abstract
    "environment",
    {
        "adversarial": "submax.environments.tables.adversarial:Adversarial",
        "bernoulli": "submax.environments.arms.bernoulli:Bernoulli",
        "bump": "submax.environments.networks.bump:Bump",
        "cascade": "submax.environments.slates.cascade:Cascade",
        "classification": "submax.environments.tables.classification:Classification",
        "combinatorial": "submax.environments.networks.combinatorial:Combinatorial",
        "contextual": "submax.environments.networks.contextual:Contextual",
        "described-arms": "submax.environments.linear.described_arms:DescribedArms",
        "designs": "submax.environments.tables.designs:Designs",
        "drifting-bernoulli": "submax.environments.changing.drifting_bernoulli:DriftingBernoulli",
        "drifting-contextual": "submax.environments.networks.drifting_contextual:DriftingContextual",
        "dueling": "submax.environments.slates.dueling:Dueling",
        "few-good": "submax.environments.arms.few_good:FewGood",
        "gaussian": "submax.environments.arms.gaussian:Gaussian",
        "heavy-tailed": "submax.environments.arms.heavy_tailed:HeavyTailed",
        "linear-contextual": "submax.environments.linear.linear_contextual:LinearContextual",
        "logistic-contextual": "submax.environments.linear.logistic_contextual:LogisticContextual",
        "poisson": "submax.environments.arms.poisson:Poisson",
        "position-clicks": "submax.environments.slates.position_clicks:PositionClicks",
        "pricing": "submax.environments.networks.pricing:Pricing",
        "ratings": "submax.environments.arms.ratings:Ratings",
        "recorded-rewards": "submax.environments.tables.recorded_rewards:RecordedRewards",
        "retiring-bernoulli": "submax.environments.changing.retiring_bernoulli:RetiringBernoulli",
        "sleeping-bernoulli": "submax.environments.changing.sleeping_bernoulli:SleepingBernoulli",
        "switching-bernoulli": "submax.environments.changing.switching_bernoulli:SwitchingBernoulli",
    },
)


def __getattr__(name: str) -> Any:
    return ENVIRONMENTS.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *ENVIRONMENTS.class_names()])
