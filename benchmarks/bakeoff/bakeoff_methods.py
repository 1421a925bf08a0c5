"""The methods of the contextual bake-off: the peer that runs each one, and its parameters.

A method with candidates has the parameters of its best candidate: the highest mean score over the
ten tables in the dense regime with ``TUNING_SEED``, which no reported result uses. The methods are
listed from the fastest to the slowest.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, NamedTuple

TABLES = (
    "banana",
    "chess",
    "magic",
    "mushroom",
    "optdigits",
    "penbased",
    "phoneme",
    "satimage",
    "segment",
    "titanic",
)
"""Tables on which parameters may be chosen."""
HELD_OUT = ("letter", "marketing", "ring", "spambase", "splice", "texture", "twonorm")
"""Tables on which no parameter of a peer or of ``rcp-adaptive`` was chosen. Two versions of
``rcp-adaptive`` were reported on them, and the training rule of the softmax network was looked at
on texture (docs/results/tuning.md)."""
RARE_TABLES = tuple(name for name in TABLES if name not in ("banana", "titanic"))
SUBMAX, VOWPAL_WABBIT, GITTINS = "submax", "vowpalwabbit", "gittins"
MABWISER, CONTEXTUALBANDITS = "mabwiser", "contextualbandits"
TUNING_SEED = 100
"""The seed of the runs that chose the parameters."""


class Method(NamedTuple):
    """A peer and the parameters that its script understands."""

    peer: str
    parameters: Mapping[str, Any]


def candidates(method: str) -> dict[str, Method]:
    """The candidates among which a tuned method was chosen; empty for a method that was not."""
    peer = METHODS[method].peer
    found = [Method(peer, parameters) for parameters in CANDIDATES.get(method, ())]
    return {f"{method} {_formatted(candidate.parameters)}": candidate for candidate in found}


def _grid(fixed: Mapping[str, Any], **values: Iterable[Any]) -> list[dict[str, Any]]:
    """All combinations of the values, each with the fixed parameters."""
    return [
        {**fixed, **dict(zip(values, chosen, strict=True))} for chosen in product(*values.values())
    ]


def _formatted(parameters: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in parameters.items()).replace(",", "")


LINEAR = {"interactions": ["sa"]}
"""Every column of the context, crossed with the action."""
QUADRATIC = {"interactions": ["sa", "ssa"]}
"""Also every product of two columns, crossed with the action."""
LEARNING_RATES = (0.1, 0.5, 2.0)
"""The default of Vowpal Wabbit is 0.5."""
COSTS = "--cb_min_cost -1 --cb_max_cost 0"
"""The range of minus the reward, which RegCB must know."""


def _vowpal_wabbit(*options: str, features: Mapping[str, Any] = LINEAR) -> list[dict[str, Any]]:
    return _grid(features, options=options, learning_rate=LEARNING_RATES)


CANDIDATES: dict[str, list[dict[str, Any]]] = {
    "linucb-tuned": _grid({"kind": "linucb"}, alpha=(0.03, 0.1, 0.3, 1.0)),
    "linear-thompson-tuned": _grid({"kind": "linear-thompson"}, width=(0.05, 0.1, 0.25, 0.5)),
    "gittins": _grid({}, epsilon=(0.02, 0.05, 0.1), forgetfulness=(0.999, 0.9999, 1.0)),
    "gittins-softmax": _grid({}, sharpness=(1.0, 3.0, 10.0, 30.0), forgetfulness=(0.999, 1.0)),
    "gittins-binned": _grid(
        {"binned": True}, epsilon=(0.005, 0.02, 0.05), forgetfulness=(0.999, 1.0)
    ),
    "mabwiser-linucb": _grid(
        {"policy": "LinUCB"}, alpha=(0.03, 0.1, 0.3, 1.0), l2_lambda=(1.0, 10.0)
    ),
    "mabwiser-lints": _grid({"policy": "LinTS"}, alpha=(0.03, 0.1, 0.3), l2_lambda=(1.0, 10.0)),
    "mabwiser-lingreedy": _grid(
        {"policy": "LinGreedy"}, epsilon=(0.005, 0.02, 0.05, 0.1), l2_lambda=(1.0, 10.0)
    ),
    "vw-epsilon-greedy": _vowpal_wabbit("--epsilon 0.005", "--epsilon 0.02", "--epsilon 0.05"),
    "vw-bag": _vowpal_wabbit("--bag 2 --greedify", "--bag 4 --greedify", "--bag 8 --greedify"),
    "vw-cover": _vowpal_wabbit(
        "--cover 1 --nounif", "--cover 4 --psi 0.1 --nounif", "--cover 4 --psi 0.01 --nounif"
    ),
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
    "vw-regcb-quadratic": _vowpal_wabbit(
        f"--regcbopt --mellowness 0.001 {COSTS}", features=QUADRATIC
    ),
    "vw-rnd": _vowpal_wabbit(
        "--rnd 3 --epsilon 0.02",
        "--rnd 3 --epsilon 0.02 --rnd_alpha 0.01",
        "--rnd 3 --epsilon 0.005 --rnd_alpha 0.01",
    ),
    "contextualbandits-linucb": _grid(
        {"policy": "LinUCB", "ucb_from_empty": False},
        alpha=(0.01, 0.03, 0.1, 0.3),
        lambda_=(1.0, 10.0),
    ),
    "contextualbandits-softmax": _grid({"policy": "SoftmaxExplorer"}, C=(0.01, 0.1, 1.0, 10.0)),
    "contextualbandits-adaptive-greedy": _grid(
        {"policy": "AdaptiveGreedy"}, C=(0.01, 0.1, 1.0, 10.0)
    ),
}

METHODS: dict[str, Method] = {
    "linucb": Method(SUBMAX, {"preset": "linucb"}),
    "linucb-tuned": Method(SUBMAX, {"kind": "linucb", "alpha": 0.3}),
    "linear-thompson": Method(SUBMAX, {"preset": "linear-thompson"}),
    "linear-thompson-tuned": Method(SUBMAX, {"kind": "linear-thompson", "width": 0.25}),
    "mabwiser-linucb": Method(MABWISER, {"policy": "LinUCB", "alpha": 0.1, "l2_lambda": 1.0}),
    "mabwiser-lints": Method(MABWISER, {"policy": "LinTS", "alpha": 0.3, "l2_lambda": 10.0}),
    "mabwiser-lingreedy": Method(
        MABWISER, {"policy": "LinGreedy", "epsilon": 0.005, "l2_lambda": 1.0}
    ),
    "gittins": Method(GITTINS, {"epsilon": 0.05, "forgetfulness": 0.999}),
    "gittins-softmax": Method(GITTINS, {"sharpness": 3.0, "forgetfulness": 0.999}),
    "gittins-binned": Method(GITTINS, {"binned": True, "epsilon": 0.005, "forgetfulness": 0.999}),
    "contextualbandits-linucb": Method(
        CONTEXTUALBANDITS,
        {"policy": "LinUCB", "ucb_from_empty": False, "alpha": 0.01, "lambda_": 10.0},
    ),
    "vw-epsilon-greedy": Method(
        VOWPAL_WABBIT, {**LINEAR, "options": "--epsilon 0.005", "learning_rate": 2.0}
    ),
    "vw-softmax": Method(
        VOWPAL_WABBIT, {**LINEAR, "options": "--softmax --lambda 100", "learning_rate": 2.0}
    ),
    "vw-squarecb": Method(
        VOWPAL_WABBIT, {**LINEAR, "options": "--squarecb --gamma_scale 30", "learning_rate": 2.0}
    ),
    "vw-regcb": Method(
        VOWPAL_WABBIT,
        {**LINEAR, "options": f"--regcbopt --mellowness 0.001 {COSTS}", "learning_rate": 2.0},
    ),
    "vw-bag": Method(
        VOWPAL_WABBIT, {**LINEAR, "options": "--bag 4 --greedify", "learning_rate": 0.5}
    ),
    "vw-rnd": Method(
        VOWPAL_WABBIT,
        {**LINEAR, "options": "--rnd 3 --epsilon 0.005 --rnd_alpha 0.01", "learning_rate": 2.0},
    ),
    "vw-cover": Method(
        VOWPAL_WABBIT, {**LINEAR, "options": "--cover 1 --nounif", "learning_rate": 2.0}
    ),
    "vw-regcb-quadratic": Method(
        VOWPAL_WABBIT,
        {**QUADRATIC, "options": f"--regcbopt --mellowness 0.001 {COSTS}", "learning_rate": 2.0},
    ),
    "contextualbandits-softmax": Method(
        CONTEXTUALBANDITS, {"policy": "SoftmaxExplorer", "C": 10.0}
    ),
    "contextualbandits-adaptive-greedy": Method(
        CONTEXTUALBANDITS, {"policy": "AdaptiveGreedy", "C": 1.0}
    ),
}
