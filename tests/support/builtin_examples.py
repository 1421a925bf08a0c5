"""Small instances of every built-in class, for the conformance suites of this project.

A class without an entry has its default instance as its only example.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from submax.core.registry import Registry
from submax.core.rewards import Binary, Continuous, Counts, Discrete, Scale
from submax.environments.tables import Classification
from submax.policies import PARTS
from submax.research.beyond.adversarial import Adversarial
from submax.research.beyond.designs import Designs

BRIEF = {"steps": 6, "batch": 8, "learning_rate": 0.05}
"""A training of a few steps: it need not learn well, only keep its contract."""
SMALL: dict[str, Any] = {"hidden": 4, "training": BRIEF}

EXAMPLES: dict[str, dict[str, list[dict[str, Any]]]] = {
    "policy": {
        "actor-critic": [{**SMALL}],
        "adaptive": [{"policy": {"kind": "posterior-submax", "features": 24}}],
        "advantage-conditioned": [
            {"estimator": {"kind": "softmax", **SMALL}, "levels": 3, **SMALL}
        ],
        "bayes-reparameterized": [{"estimator": {"kind": "softmax", **SMALL}, **SMALL}],
        "bayes-ucb": [{}, {"beta": 9.0}, {"pending": True}],
        "cascade-kl-ucb": [{}, {"exploration": 0.0}],
        "climbing-dropout-thompson": [{"masks": 3, "climbs": 1, "sweeps": 2, **SMALL}],
        "climbing-epsilon-greedy": [
            {
                "epsilon": 0.2,
                "climbs": 2,
                "sweeps": 2,
                "hidden": 4,
                "dropout": 0.0,
                "training": BRIEF,
            }
        ],
        "doubly-robust-gradient": [{**SMALL, "largest_weight": 1.0}],
        "dropout-thompson": [{"masks": 10, **SMALL}],
        "epsilon-greedy": [{"epsilon": 0.0}, {}, {"epsilon": 1.0}],
        "exp3-ix": [{}, {"learning_rate": 0.1}],
        "fitted-thompson": [{"sharpness": 4.0}],
        "fourier-thompson": [{"points": 3, "features": 8, "draws": 5}],
        "gradient": [{}, {"step": 2.0}],
        "greedy-regression": [
            {"regressor": "sklearn.linear_model.LinearRegression"},
            {
                "regressor": ["sklearn.tree.ExtraTreeRegressor", "sklearn.tree.ExtraTreeRegressor"],
                "parameters": {"max_depth": 3},
                "memory": {"reservoir": 9},
            },
        ],
        "gridded": [
            {"policy": {"kind": "epsilon-greedy", "epsilon": 0.3}, "points": 3},
            {"policy": {"kind": "thompson"}, "points": 4},
            {"policy": {"kind": "reward-conditioned"}, "points": 1},
        ],
        "hill-climbing-thompson": [
            {"draws": 20, "restarts": 2},
            {"draws": 10, "restarts": 1, "sweeps": 2},
        ],
        "imed": [{}, {"pending": True}],
        "information-directed": [{}, {"beta": 9.0, "draws": 50}],
        "kl-ucb": [{}, {"pending": True}, {"exploration": 3.0}],
        "linear-thompson": [{"width": 0.5, "draws": 8}],
        "linucb": [{}, {"alpha": 0.0}],
        "logistic-submax": [{}, {"depth": 1, "width": 2.0, "memory": {"discount": 0.9}}],
        "moss": [{}, {"pending": True}, {"horizon": 1000}],
        "neural-epsilon-greedy": [{"epsilon": 0.2, "hidden": 4, "dropout": 0.0, "training": BRIEF}],
        "neural-thompson": [{**SMALL, "scale": 0.5}],
        "neural-ucb": [{**SMALL}],
        "policy-gradient": [{**SMALL}],
        "posterior-greedy": [{}, {"beta": 9.0}],
        "posterior-slots": [{"draws": 6}, {"draws": 4, "pairs": False, "depth": 4}],
        "posterior-submax": [
            {"features": 24},
            {"features": 24, "draws": 4, "kernels": False, "depth": 5},
            {"features": 24, "draws": 4, "memory": {"discount": 0.9}},
        ],
        "predictive-mixture": [
            {
                "policies": [
                    {"kind": "reward-conditioned"},
                    {
                        "kind": "reward-conditioned",
                        "estimator": {"kind": "counting", "smoothing": 0.1},
                    },
                ]
            }
        ],
        "preference-optimization": [{**SMALL}],
        "relative-ucb": [{}, {"exploration": 2.0}],
        "reward-conditioned": [
            {"strategy": {"kind": "optimistic"}},
            {"strategy": {"kind": "optimized"}},
            {},
            {"strategy": {"kind": "target", "distribution": "observed"}},
            {"strategy": {"kind": "iterated"}},
            {"estimator": {"kind": "counting", "smoothing": 0.1}, "strategy": {"kind": "clipped"}},
            {"strategy": {"kind": "target", "distribution": [0.3, 0.7]}},
            {
                "estimator": {"kind": "counting", "smoothing": "fitted"},
                "strategy": {"kind": "tracking"},
            },
            {"strategy": {"kind": "clipped"}, "max_enumerated_actions": 1},
            {
                "strategy": {"kind": "target", "distribution": [0.3, 0.7]},
                "max_enumerated_actions": 1,
            },
            {"estimator": {"kind": "softmax", **SMALL}, "strategy": {"kind": "optimized"}},
            {
                "estimator": {
                    "kind": "cvae",
                    "hidden": 4,
                    "latent": 2,
                    "draws": 3,
                    "training": BRIEF,
                },
                "strategy": {"kind": "clipped"},
                "max_enumerated_actions": 1,
            },
        ],
        "sample-average-sampling": [{**SMALL}],
        "sample-average-ucb": [{**SMALL}],
        "slot-by-slot": [
            {},
            {
                "estimator": {"kind": "counting", "smoothing": "fitted"},
                "strategy": {"kind": "tracking"},
            },
            {
                "estimator": {"kind": "softmax", **SMALL},
                "strategy": {"kind": "tracking", "confidence_scale": 0.3},
            },
            {
                "estimator": {
                    "kind": "cvae",
                    "hidden": 4,
                    "latent": 2,
                    "draws": 3,
                    "training": BRIEF,
                }
            },
        ],
        "tempered": [
            {"policy": {"kind": "reward-conditioned"}},
            {"policy": {"kind": "reward-conditioned"}, "temperature": 0.5},
        ],
        "thompson": [
            {},
            {"alpha": 0.5, "beta": 0.5},
            {"memory": {"discount": 0.9}},
            {"memory": {"window": 5}},
        ],
        "ucb1": [{}, {"pending": True}, {"exploration": 0.0}],
        "variance-network-ucb": [{**SMALL}],
    },
    "estimator": {
        "classifier": [
            {
                "classifier": "sklearn.linear_model.LogisticRegression",
                "parameters": {"max_iter": 1000},
            },
            {
                "classifier": "sklearn.tree.DecisionTreeClassifier",
                "parameters": {"max_depth": 3},
                "smoothing": 0.1,
                "encoding": "one-hot",
            },
            {
                "classifier": "sklearn.tree.ExtraTreeClassifier",
                "encoding": "value",
                "memory": {"reservoir": 9},
            },
        ],
        "counting": [
            {"smoothing": 0.0},
            {"smoothing": 0.1},
            {},
            {"smoothing": "fitted"},
            {"smoothing": "fitted", "memory": "fitted"},
            {"memory": {"discount": 0.9}},
            {"memory": {"window": 10}},
            {"memory": {"reservoir": 5}},
        ],
        "cvae": [
            {"hidden": 4, "latent": 2, "draws": 3, "training": BRIEF},
            {"hidden": 4, "latent": 2, "draws": 2, "shared_draws": False, "training": BRIEF},
            {"hidden": 4, "latent": 2, "draws": 2, "training": BRIEF, "memory": {"reservoir": 5}},
        ],
        "softmax": [{**SMALL}],
    },
    "strategy": {
        "clipped": [{"weight": 0.5}, {"weight": 1.0}, {}, {"weight": 1000000.0}],
        "iterated": [{"depth": 1}, {}, {"depth": 5}],
        "target": [
            {},
            {"distribution": [1.0, 0.0]},
            {"distribution": [0.0, 1.0]},
            {"distribution": "observed"},
        ],
        "tilted": [{"temperature": 0.01}, {}, {"temperature": 100.0}],
        "tracking": [{}, {"confidence_scale": 0.3}],
    },
    "environment": {
        "bernoulli": [
            {"arms": 1},
            {"arms": 3},
            {"arms": 20, "beta": 9.0},
            {"arms": 3, "means": [0.9, 0.8, 0.7]},
        ],
        "smooth-reward": [
            {},
            {"dimensions": 3, "context": 0, "width": 0.3},
            {"sizes": [3], "context": 0, "noise": 0.0},
            {"dimensions": 2, "sizes": [2, 4], "context": 3},
        ],
        "cascade": [{}, {"items": 3, "positions": 1}, {"items": 4, "positions": 4, "beta": 1.0}],
        "combinatorial": [
            {},
            {"sizes": [3, 2, 4], "dimension": 3, "shift": 0.0, "hidden": 8},
            {"sizes": [5], "dimension": 2},
        ],
        "contextual": [{}, {"shift": -4.0}, {"arms": 1, "dimension": 1, "hidden": 1}],
        "drifting-bernoulli": [
            {"arms": 3},
            {"arms": 20, "beta": 9.0, "memory": 100.0},
            {"arms": 1, "alpha": 0.5, "beta": 0.5},
        ],
        "disjoint-contextual": [
            {},
            {"arms": 3, "dimension": 2, "shift": -2.0, "hidden": 8},
        ],
        "drifting-contextual": [
            {},
            {"arms": 3, "dimension": 2, "shift": -2.0, "hidden": 8, "memory": 50.0},
        ],
        "dueling": [
            {"arms": 4},
            {"arms": 3, "utilities": [0.5, 0.0, -1.0], "weak": True},
            {
                "arms": 3,
                "preferences": [(0.5, 0.8, 0.3), (0.2, 0.5, 0.9), (0.7, 0.1, 0.5)],
                "winner": "borda",
            },
            {
                "arms": 3,
                "preferences": [(0.5, 0.8, 0.3), (0.2, 0.5, 0.9), (0.7, 0.1, 0.5)],
                "winner": "copeland",
            },
        ],
        "sparse-bernoulli": [{"arms": 30}, {"arms": 20, "good": 4, "high": 0.9, "low": 0.0}],
        "gaussian": [
            {"arms": 4},
            {"arms": 10, "spread": 0.5, "noise": 3.0},
            {"arms": 1, "noise": 0.0},
            {"arms": 2, "means": [1.0, -1.0]},
        ],
        "logistic-contextual": [
            {},
            {"arms": 3, "dimension": 1, "shift": -4.0},
        ],
        "poisson": [{"arms": 4}, {"arms": 3, "shape": 20.0, "mean": 50.0}],
        "pricing": [{}, {"context": 0}, {"low": 0.0, "high": 1.0, "context": 5}],
        "ratings": [
            {"arms": 4},
            {"arms": 3, "values": [-2.0, 0.0, 0.5, 10.0], "concentration": 0.2},
            {"arms": 1, "values": [0.0, 1.0]},
        ],
        "sleeping-bernoulli": [
            {"sets": [(0, 1, 2), (0, 1)], "arms": 3, "means": [0.05, 0.5, 0.9]},
            {"sets": [(0,), (0, 1, 2, 3)], "arms": 4},
        ],
        "switching-bernoulli": [{"arms": 4}, {"arms": 3, "period": 1, "beta": 9.0}],
    },
    "delay": {
        "batched-rewards": [{}, {"size": 4}, {"size": 7}],
        "geometric": [
            {"mean": 2.0},
            {"mean": 100.0, "missing": 0.3},
        ],
        "lag": [{}, {"steps": 3}, {"steps": 1000}],
        "pareto": [
            {"mean": 5.0},
            {"mean": 20.0, "missing": 0.1, "shape": 3.0},
        ],
    },
    "off-policy estimator": {
        "clipped-inverse-propensity": [{"threshold": 2.0}, {}],
        "shrunk-doubly-robust": [{"shrinkage": 4.0}, {}],
        "switch-doubly-robust": [{"threshold": 2.0}, {}],
    },
}


def examples_of(registry: Registry[Any]) -> Iterator[Any]:
    """Yield the examples of every built-in class of a registry."""
    for kind in registry.homes:
        yield from examples(registry, kind)


def examples(registry: Registry[Any], kind: str) -> Iterator[Any]:
    """Yield the examples of one built-in class."""
    if kind in TABLES:
        yield from TABLES[kind]()
        return
    for table in EXAMPLES[registry.word].get(kind, [{}]):
        yield registry.build({"kind": kind, **table}, PARTS)


def _adversarial() -> Iterator[Adversarial]:
    """Two arms that are good in turn."""
    yield Adversarial.of(np.tile([[1.0, 0.0], [0.0, 0.5]], (20, 1)))


def _classification() -> Iterator[Classification]:
    """Distinct and repeated features, with and without replacement, labels of all types."""
    rng = np.random.default_rng(0)
    yield Classification.of(rng.standard_normal((100, 3)), rng.integers(4, size=100))
    repeated = rng.integers(3, size=(200, 3)).astype(np.float64)
    labels = rng.choice(["bad", "good"], size=200)
    yield Classification.of(repeated, labels, standardize=False)
    numbers = rng.standard_normal((50, 2))
    yield Classification.of(numbers, rng.integers(3, size=50), replacement=False)
    labels = rng.integers(3, size=200)
    yield Classification.of(repeated, labels, replacement=False, pays=(0.01, 0.1))


def _designs() -> Iterator[Designs]:
    """Three slots, one of them with a single choice, without and with noise."""
    rng = np.random.default_rng(0)
    first, second = np.divmod(np.arange(12), 4)
    columns = {"first": first, "fixed": ["same"] * 12, "second": second}
    yield Designs.of({**columns, "value": rng.standard_normal(12)})
    yield Designs.of({**columns, "value": np.arange(12.0)}, noise=0.5, minimize=True)


TABLES: dict[str, Callable[[], Iterator[Any]]] = {
    "adversarial": _adversarial,
    "classification": _classification,
    "designs": _designs,
}
"""Environments that are made from arrays."""

SCALES: list[Scale] = [
    Binary(),
    Discrete((-1.0, 0.0, 2.0)),
    Discrete((1.0, 2.0, 3.0, 4.0, 5.0), asked=3),
    Continuous(),
    Continuous(low=-5.0, high=50.0, quantiles=(0.0, 1.0), asked=4, bin_edges=3),
    Counts(),
    Counts(quantiles=(0.0, 1.0), asked=4, bin_edges=2),
]
