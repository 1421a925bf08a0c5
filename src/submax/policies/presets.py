"""Policies with a name of their own: on the command line, in TOML files and over HTTP."""

from typing import Any

Table = dict[str, Any]


def _conditioned(estimator: str | Table = "counting", strategy: str | Table = "submax") -> Table:
    return {"kind": "reward-conditioned", "estimator": estimator, "strategy": strategy}


BY_DEFAULTS = (
    *("actor-critic", "cascade-kl-ucb", "climbing-dropout-thompson", "dropout-thompson"),
    *("exp3-ix", "fourier-thompson", "gradient"),
    *("hill-climbing-thompson", "imed", "kl-ucb", "linear-thompson", "linucb", "moss"),
    *("neural-thompson", "neural-ucb", "policy-gradient", "posterior-slots", "posterior-submax"),
    *("random", "relative-ucb", "sample-average-sampling"),
    *("sample-average-ucb", "top-two-thompson"),
    *("track-and-stop", "ucb1", "variance-network-ucb"),
)
"""Kinds whose preset has the name of the kind, and the defaults of all parameters."""
EPSILON_GREEDY = ("climbing-epsilon-greedy", "epsilon-greedy", "neural-epsilon-greedy")
WITHOUT_PRIOR = ("imed", "kl-ucb", "moss", "ucb1")
"""Indices of arms that can count pending pulls, like that of bayes-ucb."""
WITH_PRIOR = ("bayes-ucb", "information-directed", "posterior-greedy", "thompson")
"""Kinds that have a Beta(1, β) prior for every arm."""
TRACKING: Table = {"kind": "tracking", "confidence_scale": 0.3}
TREES: Table = {"kind": "greedy-regression", "memory": {"reservoir": 200_000}}
BOOSTED = "sklearn.ensemble.HistGradientBoostingRegressor"
FOREST = "sklearn.ensemble.ExtraTreesRegressor"
LOGISTIC = "sklearn.linear_model.LogisticRegression"

PRESETS: dict[str, Table] = {
    "rcp-adaptive": {"kind": "adaptive"},
    "rcp-optimistic": _conditioned(strategy="optimistic"),
    "rcp-optimized": _conditioned(strategy="optimized"),
    "rcp-submax": _conditioned(),
    "rcp-marginalized": _conditioned(strategy={"kind": "target", "distribution": "observed"}),
    "rcp-iterated-2": _conditioned(strategy="iterated"),
    "rcp-cvae-optimistic": _conditioned("cvae", "optimistic"),
    "rcp-cvae-optimized": _conditioned("cvae", "optimized"),
    "rcp-cvae-submax": _conditioned("cvae"),
    "rcp-softmax-submax": _conditioned("softmax"),
    "rcp-softmax-converged": _conditioned(
        {"kind": "softmax", "hidden": 128, "training": {"steps": "converged"}}
    ),
    "rcp-cvae-submax-by-slot": {"kind": "slot-by-slot", "estimator": "cvae"},
    "rcp-softmax-adaptive": {"kind": "slot-by-slot", "estimator": "softmax", "strategy": TRACKING},
    "rcp-cvae-adaptive": {"kind": "slot-by-slot", "estimator": "cvae", "strategy": TRACKING},
    "bayes-submax": {"kind": "bayes-reparameterized"},
    "bayes-optimistic": {"kind": "bayes-reparameterized", "strategy": "optimistic"},
    "thompson-fitted": {"kind": "fitted-thompson"},
    "thompson-sharpened": {"kind": "fitted-thompson", "sharpness": 4.0},
    "discounted-thompson": {"kind": "thompson", "memory": {"discount": 0.999}},
    "sliding-window-thompson": {"kind": "thompson", "memory": {"window": 1000}},
    "boosted-greedy": TREES,
    "forest-greedy": {**TREES, "regressor": FOREST, "parameters": {"min_samples_leaf": 2}},
    "trees-greedy": {**TREES, "regressor": [BOOSTED, FOREST]},
    "mean-per-arm": {"kind": "greedy-regression", "regressor": []},
    "ridge-greedy": {**TREES, "regressor": "sklearn.linear_model.Ridge"},
    # It converges in fewer steps.
    "logistic-greedy": {**TREES, "regressor": LOGISTIC, "parameters": {"max_iter": 1000}},
    "grid-epsilon-greedy-0.1": {"kind": "gridded"},
    "grid-thompson-1-1": {"kind": "gridded", "policy": {"kind": "thompson"}},
    "grid-linear-thompson": {"kind": "gridded", "policy": {"kind": "linear-thompson"}},
    "grid-rcp-submax": {"kind": "gridded", "policy": {"kind": "reward-conditioned"}},
    **{kind: {"kind": kind} for kind in BY_DEFAULTS},
    **{f"{kind}-pending": {"kind": kind, "pending": True} for kind in WITHOUT_PRIOR},
    **{
        f"{kind}-{epsilon:g}": {"kind": kind, "epsilon": epsilon}
        for kind in EPSILON_GREEDY
        for epsilon in (0.01, 0.05, 0.1, 0.2)
    },
    **{
        f"{kind}-1-{beta:g}": {"kind": kind, "beta": beta}
        for kind in WITH_PRIOR
        for beta in (1.0, 9.0, 99.0)
    },
    **{
        f"bayes-ucb-1-{beta:g}-pending": {"kind": "bayes-ucb", "beta": beta, "pending": True}
        for beta in (1.0, 9.0, 99.0)
    },
}
"""The kind and the parameters of each; parameters that are not given have their defaults."""
