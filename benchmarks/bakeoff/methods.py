"""The methods of the bake-off: the library that runs each one, and how its parameters are chosen.

``chosen.json`` has the parameters that were chosen, by regime.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

SUBMAX, REFERENCE = "submax", "reference"
"""Played with our own Python; the second are short implementations of published methods."""
DEFAULT = "rcp-adaptive"
PRESETS = ("linucb", "linear-thompson", DEFAULT, "random")
"""Policies of submax that are not tuned."""


class Method(NamedTuple):
    """A peer and the parameters that its player understands."""

    peer: str
    parameters: Mapping[str, Any]


class Tuned(NamedTuple):
    """A method whose ``parameter`` is tuned along ``values``, for each of the ``options``.

    The first round tries the values from ``first`` to ``last``; the second goes beyond an edge.
    """

    peer: str
    options: Sequence[Mapping[str, Any]]
    parameter: str
    values: Sequence[float]
    first: int
    last: int

    def method(self, option: int, position: int) -> Method:
        """Return the method with one of its options and values.

        A parameter of a part is named by its path, such as ``base_parameters.max_iter``.
        """
        settings = {**self.options[option]}
        part, _, name = self.parameter.rpartition(".")
        if part:
            settings[part] = {**settings.get(part, {}), name: self.values[position]}
        else:
            settings[name] = self.values[position]
        return Method(self.peer, settings)


WIDTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
EPSILONS = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2)
PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
COSTS = "--cb_min_cost -1 --cb_max_cost 0"
"""The range of minus the reward, which RegCB must know."""


def _all(name: str, *values: Any, **fixed: Any) -> list[dict[str, Any]]:
    return [{**fixed, name: value} for value in values]


def _mabwiser(policy: str, parameter: str, *tuned: Any) -> Tuned:
    return Tuned("mabwiser", _all("l2_lambda", 1.0, 10.0, policy=policy), parameter, *tuned)


def _vowpal_wabbit(*options: str, features: Sequence[str] = ("sa",)) -> Tuned:
    """Every column of the context is crossed with the action (``sa``), or every two (``ssa``)."""
    given = _all("options", *options, interactions=list(features))
    return Tuned("vowpalwabbit", given, "learning_rate", (0.02, 0.1, 0.5, 2.0, 8.0, 32.0), 1, 3)


def _trees(base: str, **fixed: Any) -> list[dict[str, Any]]:
    """Both explorations of contextualbandits with this base."""
    given = {"base": base, "base_parameters": fixed}
    return [
        {"policy": "SoftmaxExplorer", **given},
        {"policy": "EpsilonGreedy", "explore_prob": 0.05, **given},
    ]


TUNED: dict[str, Tuned] = {
    "linucb-tuned": Tuned(SUBMAX, [{"kind": "linucb"}], "alpha", WIDTHS, 2, 5),
    "linear-thompson-tuned": Tuned(SUBMAX, [{"kind": "linear-thompson"}], "width", WIDTHS, 2, 5),
    "mabwiser-linucb": _mabwiser("LinUCB", "alpha", WIDTHS, 2, 5),
    "mabwiser-lints": _mabwiser("LinTS", "alpha", WIDTHS, 2, 4),
    "mabwiser-lingreedy": _mabwiser("LinGreedy", "epsilon", EPSILONS, 1, 4),
    "mabwiser-tree": Tuned(
        "mabwiser", [{"policy": "EpsilonGreedy", "near": "TreeBandit"}], "epsilon", EPSILONS, 1, 4
    ),
    "mabwiser-nearest": Tuned(
        "mabwiser",
        [
            {"policy": "EpsilonGreedy", "epsilon": 0.02, "near": "KNearest"},
            {"policy": "UCB1", "alpha": 0.1, "near": "KNearest"},
        ],
        # The first batch has 100 rows: there are no more neighbours.
        *("near_parameters.k", (1, 3, 10, 30, 60, 100), 1, 3),
    ),
    "gittins": Tuned(
        "gittins", _all("forgetfulness", 0.999, 0.9999, 1.0), "epsilon", EPSILONS, 2, 4
    ),
    "gittins-softmax": Tuned(
        *("gittins", _all("forgetfulness", 0.999, 1.0)),
        *("sharpness", (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0), 2, 5),
    ),
    "gittins-binned": Tuned(
        "gittins", _all("forgetfulness", 0.999, 1.0, binned=True), "epsilon", EPSILONS, 1, 3
    ),
    "kernel-ucb": Tuned(
        REFERENCE,
        [
            {"method": "kernel-ucb", "ridge": ridge, "scale": scale}
            for ridge in (0.1, 1.0)
            for scale in (0.5, 1.0)
        ],
        *("alpha", WIDTHS, 2, 4),
    ),
    "neural-linear": Tuned(
        REFERENCE,
        _all("steps", 50, 200, method="neural-linear", hidden=50),
        *("precision", (0.01, 0.05, 0.25, 1.0, 5.0, 25.0), 1, 3),
    ),
    "vw-epsilon-greedy": _vowpal_wabbit("--epsilon 0.005", "--epsilon 0.02", "--epsilon 0.05"),
    "vw-softmax": _vowpal_wabbit(
        "--softmax --lambda 10", "--softmax --lambda 30", "--softmax --lambda 100"
    ),
    "vw-squarecb": _vowpal_wabbit(
        "--squarecb --gamma_scale 30",
        "--squarecb --gamma_scale 100",
        "--squarecb --gamma_scale 300",
    ),
    "vw-regcb": _vowpal_wabbit(
        f"--regcbopt --mellowness 0.01 {COSTS}",
        f"--regcbopt --mellowness 0.001 {COSTS}",
        f"--regcbopt --mellowness 0.0001 {COSTS}",
    ),
    "vw-bag": _vowpal_wabbit("--bag 2 --greedify", "--bag 4 --greedify", "--bag 8 --greedify"),
    "vw-rnd": _vowpal_wabbit(
        "--rnd 3 --epsilon 0.02",
        "--rnd 3 --epsilon 0.02 --rnd_alpha 0.01",
        "--rnd 3 --epsilon 0.005 --rnd_alpha 0.01",
    ),
    "vw-cover": _vowpal_wabbit(
        "--cover 1 --nounif", "--cover 4 --psi 0.1 --nounif", "--cover 4 --psi 0.01 --nounif"
    ),
    "vw-regcb-quadratic": _vowpal_wabbit(
        f"--regcbopt --mellowness 0.001 {COSTS}", features=("sa", "ssa")
    ),
    "contextualbandits-linucb": Tuned(
        "contextualbandits",
        _all("lambda_", 1.0, 10.0, policy="LinUCB", ucb_from_empty=False),
        *("alpha", (0.001, *WIDTHS), 2, 5),
    ),
    "contextualbandits-softmax": Tuned(
        "contextualbandits", [{"policy": "SoftmaxExplorer"}], "C", PENALTIES, 1, 4
    ),
    "contextualbandits-adaptive-greedy": Tuned(
        "contextualbandits", [{"policy": "AdaptiveGreedy"}], "C", PENALTIES, 1, 4
    ),
    "contextualbandits-boosting": Tuned(
        "contextualbandits",
        _trees("boosting", min_samples_leaf=5),
        *("base_parameters.max_iter", (5, 10, 20, 50, 100, 200), 2, 3),
    ),
    "contextualbandits-forest": Tuned(
        "contextualbandits",
        _trees("forest", n_estimators=50),
        *("base_parameters.min_samples_leaf", (1, 2, 4, 8, 16, 32), 1, 3),
    ),
}
"""The methods, from the fastest to the slowest."""
