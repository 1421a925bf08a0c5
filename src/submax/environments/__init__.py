"""Environments: distributions over hidden worlds, in which policies are simulated."""

from typing import Any

from submax.core.contracts.environment import Environment
from submax.core.registry import Registry

ENVIRONMENTS: Registry[Environment[Any]] = Registry(
    "submax.environments",
    Environment,  # type: ignore[type-abstract]  # a contract is abstract
    "environment",
    {
        "adversarial": ".tables.adversarial:Adversarial",
        "bernoulli": ".arms.bernoulli:Bernoulli",
        "bump": ".networks.bump:Bump",
        "cascade": ".slates.cascade:Cascade",
        "classification": ".tables.classification:Classification",
        "combinatorial": ".networks.combinatorial:Combinatorial",
        "contextual": ".networks.contextual:Contextual",
        "described-arms": ".linear.described_arms:DescribedArms",
        "designs": ".tables.designs:Designs",
        "drifting-bernoulli": ".changing.drifting_bernoulli:DriftingBernoulli",
        "drifting-contextual": ".networks.drifting_contextual:DriftingContextual",
        "dueling": ".slates.dueling:Dueling",
        "few-good": ".arms.few_good:FewGood",
        "gaussian": ".arms.gaussian:Gaussian",
        "heavy-tailed": ".arms.heavy_tailed:HeavyTailed",
        "linear-contextual": ".linear.linear_contextual:LinearContextual",
        "logistic-contextual": ".linear.logistic_contextual:LogisticContextual",
        "poisson": ".arms.poisson:Poisson",
        "position-clicks": ".slates.position_clicks:PositionClicks",
        "pricing": ".networks.pricing:Pricing",
        "ratings": ".arms.ratings:Ratings",
        "recorded-rewards": ".tables.recorded_rewards:RecordedRewards",
        "retiring-bernoulli": ".changing.retiring_bernoulli:RetiringBernoulli",
        "sleeping-bernoulli": ".changing.sleeping_bernoulli:SleepingBernoulli",
        "switching-bernoulli": ".changing.switching_bernoulli:SwitchingBernoulli",
    },
)


def __getattr__(name: str) -> Any:
    return ENVIRONMENTS.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *ENVIRONMENTS.class_names()])
