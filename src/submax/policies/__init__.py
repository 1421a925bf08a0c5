"""Policies: how decisions are made and what is learned from rewards."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from submax.core.checks import did_you_mean, one_of
from submax.core.errors import InputError
from submax.core.optional import lazy_names
from submax.core.policy import Policy
from submax.core.registry import Registry
from submax.estimators import ESTIMATORS
from submax.policies.presets import PRESETS
from submax.strategies import STRATEGIES

POLICIES: Registry[Policy[Any]] = Registry(
    "submax.policies",
    Policy,  # type: ignore[type-abstract]  # a contract is abstract
    "policy",
    {
        "actor-critic": "submax.research.rivals.policy_gradient:ActorCritic",
        "adaptive": "submax.policies.adaptive:Adaptive",
        "bayes-reparameterized": "submax.research.rivals.conditioned:BayesReparameterized",
        "bayes-ucb": "submax.policies.ucb:BayesUCB",
        "cascade-kl-ucb": "submax.research.beyond.slates:CascadeKLUCB",
        "climbing-dropout-thompson": "submax.research.rivals.climbing:ClimbingDropoutThompson",
        "climbing-epsilon-greedy": "submax.research.rivals.climbing:ClimbingEpsilonGreedy",
        "dropout-thompson": "submax.research.rivals.neural:DropoutThompson",
        "epsilon-greedy": "submax.policies.epsilon_greedy:EpsilonGreedy",
        "exp3-ix": "submax.research.beyond.adversarial:EXP3IX",
        "fitted-thompson": "submax.research.rivals.bayesian_arms:FittedThompson",
        "fourier-thompson": "submax.research.beyond.real_valued:FourierThompson",
        "gradient": "submax.policies.epsilon_greedy:Gradient",
        "greedy-regression": "submax.policies.greedy_regression:GreedyRegression",
        "gridded": "submax.research.beyond.real_valued:Gridded",
        "hill-climbing-thompson": "submax.research.rivals.climbing:HillClimbingThompson",
        "imed": "submax.policies.ucb:IMED",
        "information-directed": "submax.research.rivals.bayesian_arms:InformationDirected",
        "kl-ucb": "submax.policies.ucb:KLUCB",
        "linear-thompson": "submax.policies.regressions:LinearThompson",
        "linucb": "submax.policies.regressions:LinUCB",
        "logistic-submax": "submax.policies.regressions:LogisticSubMax",
        "moss": "submax.policies.ucb:MOSS",
        "neural-epsilon-greedy": "submax.research.rivals.neural:NeuralEpsilonGreedy",
        "neural-thompson": "submax.research.rivals.neural:NeuralThompson",
        "neural-ucb": "submax.research.rivals.neural:NeuralUCB",
        "per-slot": "submax.policies.slots:PerSlot",
        "policy-gradient": "submax.research.rivals.policy_gradient:PolicyGradient",
        "posterior-greedy": "submax.policies.epsilon_greedy:PosteriorGreedy",
        "posterior-slots": "submax.policies.slots:PosteriorSlots",
        "posterior-submax": "submax.policies.regressions:PosteriorSubMax",
        "predictive-mixture": "submax.policies.adaptive:PredictiveMixture",
        "random": "submax.policies.epsilon_greedy:Random",
        "relative-ucb": "submax.research.beyond.duels:RelativeUCB",
        "reward-conditioned": "submax.policies.reward_conditioned:RewardConditioned",
        "sample-average-sampling": "submax.research.rivals.neural:SampleAverageSampling",
        "sample-average-ucb": "submax.research.rivals.neural:SampleAverageUCB",
        "slot-by-slot": "submax.policies.slots:SlotBySlot",
        "tempered": "submax.policies.greedy_regression:Tempered",
        "thompson": "submax.policies.thompson:Thompson",
        "top-two-thompson": "submax.research.beyond.identification:TopTwoThompson",
        "track-and-stop": "submax.research.beyond.identification:TrackAndStop",
        "ucb1": "submax.policies.ucb:UCB1",
        "variance-network-ucb": "submax.research.rivals.neural:VarianceNetworkUCB",
    },
)


PARTS: dict[str, Registry[Any]] = {
    "estimator": ESTIMATORS,
    "strategy": STRATEGIES,
    "policy": POLICIES,
    "policies": POLICIES,
}
"""The registries of the parameters that are estimators, strategies or policies themselves."""


def presets() -> dict[str, Policy[Any]]:
    """All policies that have a name, by name."""
    return {name: make_policy(name) for name in preset_tables()}


@cache
def preset_tables() -> dict[str, Mapping[str, Any]]:
    """The kind and the parameters of every preset.

    An installed package can add presets by an entry point of the group ``submax.presets``, which
    names a dictionary like `PRESETS`. The name of a built-in preset stays with the built-in one.
    """
    tables: dict[str, Mapping[str, Any]] = {}
    for entry in entry_points(group="submax.presets"):
        tables |= entry.load()
    return {**tables, **PRESETS}


def make_policy(specification: str | Mapping[str, Any]) -> Policy[Any]:
    """A policy from the name of a preset, or from a table with ``kind`` and its parameters.

    A class of the user's own is named ``my_policy.py:MyPolicy`` or ``package.module:MyPolicy``, as
    ``kind`` of a table, or alone if all its parameters have defaults. Where a table needs another
    policy, it can have the name of a preset.

    >>> make_policy("thompson-1-9")
    Thompson(alpha=1.0, beta=9.0, memory=Memory(window=None, reservoir=None, discount=1.0))
    >>> make_policy({"kind": "epsilon-greedy", "epsilon": 0.3})
    EpsilonGreedy(epsilon=0.3)
    >>> make_policy({"kind": "gridded", "policy": "ucb1"}).policy
    UCB1(pending=False, exploration=2.0)
    """
    if isinstance(specification, str) and ":" in specification:
        return make_policy({"kind": specification})
    if isinstance(specification, str):
        named = preset_tables()
        if specification in POLICIES.names() and specification not in named:
            raise InputError(
                f"{specification!r} is a kind of policy, not a name: "
                f"{did_you_mean(specification, named, count=3)}else give a table, {{'kind': "
                f"{specification!r}, …}}"
            )
        one_of("policy", specification, named, listed_by="see `submax policies`")
        return POLICIES.build(_with_presets(named[specification]), PARTS)
    if not isinstance(specification, Mapping):
        raise no_policy(specification)
    kind = specification.get("kind")
    unknown = isinstance(kind, str) and ":" not in kind and not POLICIES.knows(kind)
    if unknown and kind in preset_tables():
        raise InputError(f"{kind!r} is the name of a policy, not a kind: give the name alone")
    return POLICIES.build(_with_presets(specification), PARTS)


def no_policy(given: object) -> InputError:
    """The error about something that is neither a name nor a table nor an instance."""
    if isinstance(given, type):
        return InputError(f"policy is the class {given.__name__}: give {given.__name__}(...)")
    return InputError(
        f"policy is {given!r:.80}, but must be a name such as 'rcp-adaptive', a table with a "
        "'kind', or a Policy"
    )


def _with_presets(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table in which the names of presets under ``policy`` are replaced by the policies."""
    changed = dict(table)
    for key, value in table.items():
        if isinstance(value, Mapping):
            changed[key] = _with_presets(value)
        elif key == "policy" and isinstance(value, str):
            changed[key] = preset_tables().get(value, value)
    return changed


__all__ = ["POLICIES", "make_policy", "presets", *POLICIES.class_names()]
__getattr__, __dir__ = lazy_names(__name__, POLICIES.modules(), __all__)
