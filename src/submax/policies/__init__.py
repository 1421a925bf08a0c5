"""Policies: how decisions are made and what is learned from rewards."""

import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from submax.core.checks import did_you_mean, one_of
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError
from submax.core.registry import PluginWarning, Registry
from submax.estimators import ESTIMATORS
from submax.policies.presets import PRESETS
from submax.strategies import STRATEGIES

POLICIES: Registry[Policy[Any]] = Registry(
    "submax.policies",
    Policy,  # type: ignore[type-abstract]  # a contract is abstract
    "policy",
    {
        "actor-critic": ".policy_gradient.actor_critic:ActorCritic",
        "adaptive": ".adaptive.adaptive:Adaptive",
        "advantage-conditioned": ".reward_conditioned.advantage_conditioned:AdvantageConditioned",
        "bayes-reparameterized": ".reward_conditioned.bayes_reparameterized:BayesReparameterized",
        "bayes-ucb": ".classic.bayes_ucb:BayesUCB",
        "cascade-kl-ucb": ".slates.cascade_kl_ucb:CascadeKLUCB",
        "cascade-ucb": ".slates.cascade_ucb:CascadeUCB",
        "climbing-dropout-thompson": ".neural.climbing_dropout_thompson:ClimbingDropoutThompson",
        "climbing-epsilon-greedy": ".neural.climbing_epsilon_greedy:ClimbingEpsilonGreedy",
        "discounted-thompson": ".forgetting.discounted_thompson:DiscountedThompson",
        "discounted-ucb": ".forgetting.discounted_ucb:DiscountedUCB",
        "double-thompson": ".slates.double_thompson:DoubleThompson",
        "doubly-robust-gradient": ".policy_gradient.doubly_robust_gradient:DoublyRobustGradient",
        "dropout-thompson": ".neural.dropout_thompson:DropoutThompson",
        "epsilon-greedy": ".classic.epsilon_greedy:EpsilonGreedy",
        "exp3": ".adversarial.exp3:EXP3",
        "exp3-ix": ".adversarial.exp3_ix:EXP3IX",
        "fitted-thompson": ".classic.fitted_thompson:FittedThompson",
        "fourier-thompson": ".real_valued.fourier_thompson:FourierThompson",
        "generative-policy-gradient": ".policy_gradient.generative_policy_gradient:GenerativePolicyGradient",
        "gradient": ".classic.gradient:Gradient",
        "greedy-regression": ".greedy.greedy_regression:GreedyRegression",
        "gridded": ".real_valued.gridded:Gridded",
        "hill-climbing-thompson": ".linear.hill_climbing_thompson:HillClimbingThompson",
        "hybrid-linucb": ".linear.hybrid_linucb:HybridLinUCB",
        "imed": ".classic.imed:IMED",
        "information-directed": ".classic.information_directed:InformationDirected",
        "kl-ucb": ".classic.kl_ucb:KLUCB",
        "linear-thompson": ".linear.linear_thompson:LinearThompson",
        "linucb": ".linear.linucb:LinUCB",
        "logistic-submax": ".adaptive.logistic_submax:LogisticSubMax",
        "logistic-thompson": ".logistic.logistic_thompson:LogisticThompson",
        "logistic-ucb": ".logistic.logistic_ucb:LogisticUCB",
        "moss": ".classic.moss:MOSS",
        "neural-epsilon-greedy": ".neural.neural_epsilon_greedy:NeuralEpsilonGreedy",
        "neural-thompson": ".neural.neural_thompson:NeuralThompson",
        "neural-ucb": ".neural.neural_ucb:NeuralUCB",
        "per-slot": ".adaptive.per_slot:PerSlot",
        "policy-gradient": ".policy_gradient.policy_gradient:PolicyGradient",
        "posterior-greedy": ".classic.posterior_greedy:PosteriorGreedy",
        "posterior-slots": ".adaptive.posterior_slots:PosteriorSlots",
        "posterior-submax": ".adaptive.posterior_submax:PosteriorSubMax",
        "predictive-mixture": ".adaptive.predictive_mixture:PredictiveMixture",
        "preference-optimization": ".policy_gradient.preference_optimization:PreferenceOptimization",
        "random": ".classic.random:Random",
        "relative-ucb": ".slates.relative_ucb:RelativeUCB",
        "reward-conditioned": ".reward_conditioned.reward_conditioned:RewardConditioned",
        "sample-average-sampling": ".uncertainty.sample_average_sampling:SampleAverageSampling",
        "sample-average-ucb": ".uncertainty.sample_average_ucb:SampleAverageUCB",
        "slate-cvae": ".reward_conditioned.slate_cvae:SlateCVAE",
        "sliding-window-thompson": ".forgetting.sliding_window_thompson:SlidingWindowThompson",
        "sliding-window-ucb": ".forgetting.sliding_window_ucb:SlidingWindowUCB",
        "slot-by-slot": ".reward_conditioned.slot_by_slot:SlotBySlot",
        "successive-elimination": ".identification.successive_elimination:SuccessiveElimination",
        "tempered": ".greedy.tempered:Tempered",
        "thompson": ".classic.thompson:Thompson",
        "top-two-thompson": ".identification.top_two_thompson:TopTwoThompson",
        "track-and-stop": ".identification.track_and_stop:TrackAndStop",
        "ucb1": ".classic.ucb1:UCB1",
        "variance-network-ucb": ".uncertainty.variance_network_ucb:VarianceNetworkUCB",
    },
)


def presets() -> dict[str, Policy[Any]]:
    """All policies that have a name, by name."""
    return {name: make_policy(name) for name in preset_tables()}


@cache
def preset_tables() -> dict[str, Mapping[str, Any]]:
    """The kind and the parameters of every preset.

    An installed package can add presets by an entry point of the group ``submax.presets``, which
    names a dictionary like `PRESETS`. The name of a built-in preset stays with the built-in one.
    """
    tables: dict[str, Mapping[str, Any]] = dict(PRESETS)
    for entry in entry_points(group="submax.presets"):
        for name, table in entry.load().items():
            if name in tables:
                warnings.warn(
                    f"an installed package ({entry.value}) declares the preset {name!r}, which is "
                    "declared already, so the earlier one is used: rename the preset",
                    PluginWarning,
                    stacklevel=2,
                )
            tables.setdefault(name, table)
    return tables


def make_policy(specification: str | Mapping[str, Any]) -> Policy[Any]:
    """A policy from the name of a preset, or from a table with ``kind`` and its parameters.

    A class of the user's own is named ``my_policy.py:MyPolicy`` or ``package.module:MyPolicy``, as
    ``kind`` of a table, or alone if all its parameters have defaults. Where a table needs another
    policy, it can have the name of a preset.

    >>> make_policy("thompson-1-9")
    Thompson(alpha=1.0, beta=9.0)
    >>> make_policy({"kind": "epsilon-greedy", "epsilon": 0.3})
    EpsilonGreedy(epsilon=0.3)
    >>> make_policy({"kind": "gridded", "policy": "thompson-1-9"}).policy
    Thompson(alpha=1.0, beta=9.0)
    """
    if isinstance(specification, str) and ":" in specification:
        return make_policy({"kind": specification})
    if isinstance(specification, str):
        named = preset_tables()
        if specification in POLICIES.names() and specification not in named:
            raise InputError(
                f"{specification!r} is a kind of policy, and not a name that includes its "
                f"parameters: {did_you_mean(specification, named, count=3)}else give a table, "
                f"{{'kind': {specification!r}, …}}"
            )
        one_of("policy", specification, named, listed_by="which `submax policies` lists")
        return _built(named[specification])
    if isinstance(specification, type):
        raise InputError(
            f"the class {specification.__name__} was given, and a policy is an instance, a name or "
            f"a table: give {specification.__name__}(...)"
        )
    if not isinstance(specification, Mapping):
        raise InputError(
            f"a policy is a name or a table with a 'kind', not {specification!r:.80}: give one of "
            "these, such as 'rcp-adaptive'"
        )
    kind = specification.get("kind")
    unknown = isinstance(kind, str) and ":" not in kind and not POLICIES.knows(kind)
    if unknown and kind in preset_tables():
        raise InputError(f"{kind!r} is the name of a policy and not a kind: give the name alone")
    return _built(specification)


def _built(table: Mapping[str, Any]) -> Policy[Any]:
    parts: dict[str, Registry[Any]] = {
        "estimator": ESTIMATORS,
        "strategy": STRATEGIES,
        "policy": POLICIES,
    }
    return POLICIES.build(_with_presets(table), parts)


def _with_presets(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table in which the names of presets under ``policy`` are replaced by the policies."""
    changed = dict(table)
    for key, value in table.items():
        if isinstance(value, Mapping):
            changed[key] = _with_presets(value)
        elif key == "policy" and isinstance(value, str):
            changed[key] = preset_tables().get(value, value)
    return changed


def __getattr__(name: str) -> Any:
    return POLICIES.exported(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *POLICIES.class_names()])
