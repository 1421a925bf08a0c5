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
        "actor-critic": "submax.policies.policy_gradient.actor_critic:ActorCritic",
        "adaptive": "submax.policies.adaptive.adaptive:Adaptive",
        "advantage-conditioned": "submax.policies.reward_conditioned.advantage_conditioned:AdvantageConditioned",
        "bayes-reparameterized": "submax.policies.reward_conditioned.bayes_reparameterized:BayesReparameterized",
        "bayes-ucb": "submax.policies.classic.bayes_ucb:BayesUCB",
        "cascade-kl-ucb": "submax.policies.slates.cascade_kl_ucb:CascadeKLUCB",
        "cascade-ucb": "submax.policies.slates.cascade_ucb:CascadeUCB",
        "climbing-dropout-thompson": "submax.policies.neural.climbing_dropout_thompson:ClimbingDropoutThompson",
        "climbing-epsilon-greedy": "submax.policies.neural.climbing_epsilon_greedy:ClimbingEpsilonGreedy",
        "discounted-thompson": "submax.policies.forgetting.discounted_thompson:DiscountedThompson",
        "discounted-ucb": "submax.policies.forgetting.discounted_ucb:DiscountedUCB",
        "double-thompson": "submax.policies.slates.double_thompson:DoubleThompson",
        "doubly-robust-gradient": "submax.policies.policy_gradient.doubly_robust_gradient:DoublyRobustGradient",
        "dropout-thompson": "submax.policies.neural.dropout_thompson:DropoutThompson",
        "epsilon-greedy": "submax.policies.classic.epsilon_greedy:EpsilonGreedy",
        "exp3": "submax.policies.adversarial.exp3:EXP3",
        "exp3-ix": "submax.policies.adversarial.exp3_ix:EXP3IX",
        "fitted-thompson": "submax.policies.classic.fitted_thompson:FittedThompson",
        "fourier-thompson": "submax.policies.real_valued.fourier_thompson:FourierThompson",
        "generative-policy-gradient": "submax.policies.policy_gradient.generative_policy_gradient:GenerativePolicyGradient",
        "gradient": "submax.policies.classic.gradient:Gradient",
        "greedy-regression": "submax.policies.greedy.greedy_regression:GreedyRegression",
        "gridded": "submax.policies.real_valued.gridded:Gridded",
        "hill-climbing-thompson": "submax.policies.linear.hill_climbing_thompson:HillClimbingThompson",
        "hybrid-linucb": "submax.policies.linear.hybrid_linucb:HybridLinUCB",
        "imed": "submax.policies.classic.imed:IMED",
        "information-directed": "submax.policies.classic.information_directed:InformationDirected",
        "kl-ucb": "submax.policies.classic.kl_ucb:KLUCB",
        "linear-thompson": "submax.policies.linear.linear_thompson:LinearThompson",
        "linucb": "submax.policies.linear.linucb:LinUCB",
        "logistic-submax": "submax.policies.adaptive.logistic_submax:LogisticSubMax",
        "logistic-thompson": "submax.policies.logistic.logistic_thompson:LogisticThompson",
        "logistic-ucb": "submax.policies.logistic.logistic_ucb:LogisticUCB",
        "moss": "submax.policies.classic.moss:MOSS",
        "neural-epsilon-greedy": "submax.policies.neural.neural_epsilon_greedy:NeuralEpsilonGreedy",
        "neural-thompson": "submax.policies.neural.neural_thompson:NeuralThompson",
        "neural-ucb": "submax.policies.neural.neural_ucb:NeuralUCB",
        "per-slot": "submax.policies.adaptive.per_slot:PerSlot",
        "policy-gradient": "submax.policies.policy_gradient.policy_gradient:PolicyGradient",
        "posterior-greedy": "submax.policies.classic.posterior_greedy:PosteriorGreedy",
        "posterior-slots": "submax.policies.adaptive.posterior_slots:PosteriorSlots",
        "posterior-submax": "submax.policies.adaptive.posterior_submax:PosteriorSubMax",
        "predictive-mixture": "submax.policies.adaptive.predictive_mixture:PredictiveMixture",
        "preference-optimization": "submax.policies.policy_gradient.preference_optimization:PreferenceOptimization",
        "random": "submax.policies.classic.random:Random",
        "relative-ucb": "submax.policies.slates.relative_ucb:RelativeUCB",
        "reward-conditioned": "submax.policies.reward_conditioned.reward_conditioned:RewardConditioned",
        "sample-average-sampling": "submax.policies.uncertainty.sample_average_sampling:SampleAverageSampling",
        "sample-average-ucb": "submax.policies.uncertainty.sample_average_ucb:SampleAverageUCB",
        "slate-cvae": "submax.policies.reward_conditioned.slate_cvae:SlateCVAE",
        "sliding-window-thompson": "submax.policies.forgetting.sliding_window_thompson:SlidingWindowThompson",
        "sliding-window-ucb": "submax.policies.forgetting.sliding_window_ucb:SlidingWindowUCB",
        "slot-by-slot": "submax.policies.reward_conditioned.slot_by_slot:SlotBySlot",
        "successive-elimination": "submax.policies.identification.successive_elimination:SuccessiveElimination",
        "tempered": "submax.policies.greedy.tempered:Tempered",
        "thompson": "submax.policies.classic.thompson:Thompson",
        "top-two-thompson": "submax.policies.identification.top_two_thompson:TopTwoThompson",
        "track-and-stop": "submax.policies.identification.track_and_stop:TrackAndStop",
        "ucb1": "submax.policies.classic.ucb1:UCB1",
        "variance-network-ucb": "submax.policies.uncertainty.variance_network_ucb:VarianceNetworkUCB",
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
