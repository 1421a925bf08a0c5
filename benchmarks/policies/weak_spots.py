"""Problems on which the default once lost, played by it and by others in the same worlds.

    python benchmarks/policies/weak_spots.py --processes 2 --out weak-spots.csv
    python benchmarks/policies/weak_spots.py --only clusters --policies rcp-adaptive linucb

A seed is a group of worlds, the same ones for every policy, so differences are paired. The CSV has
a line for each replica and measure.
"""

import argparse
import math
import sys
import time
import tomllib
import warnings
from concurrent.futures import as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measuring import append_rows, read_rows
from submax import environments
from submax.core.arrays import Actions, Floats
from submax.core.environment import Environment
from submax.core.errors import ContextIgnoredWarning, InputError
from submax.core.policy import Policy, WrapperPolicy
from submax.core.problem import ChosenActions, Feedback, Problem
from submax.core.spaces import Arms
from submax.environments.arms import Successes
from submax.environments.contextual import LogisticContextual
from submax.environments.tables import Classification
from submax.policies import make_policy
from submax.simulation.delays import BatchedRewards
from submax.simulation.results import record_run
from submax.simulation.runner import available_cores, local_executor
from submax.simulation.simulate import simulate

COLUMNS = ("problem", "policy", "seed", "replica", "measure", "value")
REPORTED_FROM = 1000
"""Constants are chosen on smaller seeds, and results reported on seeds from this one on."""
SHARE = "share of the better arm"
READ = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
SPOTS: dict[str, dict[str, Any]] = READ["spots"]
"""The problems by name."""


# Environments that submax does not have -----------------------------------------------------------


@dataclass(frozen=True)
class Weekdays(Successes[Floats]):
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
        return np.take_along_axis(context @ world, action, axis=2)[..., 0]

    def best_reward(self, world: Floats, context: Floats) -> Floats:
        return (context @ world).max(axis=2)


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


ENVIRONMENTS: dict[str, Any] = {
    "weekdays": Weekdays,
    "unit-contexts": UnitContexts,
    "clusters": clusters,
}


# Policies that submax does not have ---------------------------------------------------------------


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
                part = feedback.rows(rows)
                one = self.policy.update(one, part._replace(context=part.context[..., :0]), rng)
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


def made(name: str) -> Policy[Any]:
    """The policy of this name: a preset, perhaps for each category by itself."""
    plain = name.removesuffix(" per category")
    return make_policy(name) if plain == name else PerCategory(make_policy(plain))


# Playing ------------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """One group of replicas of a problem, played by one policy."""

    problem: str
    policy: str
    seed: int


def play(cell: Cell) -> dict[str, list[float]]:
    """Play one group; return the values of the problem's measures, one for each replica."""
    spot = SPOTS[cell.problem]
    decisions, group, parameters = spot["decisions"], spot["group"], dict(spot["environment"])
    own = ENVIRONMENTS.get(parameters.pop("kind"))
    policy = made(cell.policy)
    timed = Timed(policy) if "ms of an update" in spot["measures"] else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ContextIgnoredWarning)
        begin = time.process_time()
        trace = simulate(
            own(**parameters) if own else environments.ENVIRONMENTS.build(spot["environment"], {}),
            timed or policy,
            observations=decisions,
            replicas=group,
            delay=BatchedRewards(spot["batch"]),
            seed=cell.seed,
            points=None,
        )
        seconds = time.process_time() - begin
    rounds = group * decisions / spot["batch"]
    values = {
        "regret": trace.final_regret,
        "mean reward": trace.final_reward / decisions,
        "ms of a round": np.full(group, 1000 * seconds / rounds),
        # Of the second half, those decisions in which only the first two arms are eligible.
        SHARE: (trace.actions[:, 902::3, 0] == 1).mean(axis=1),
    }
    if timed is not None:
        values["ms of an update"] = np.array([1000 * float(np.mean(timed.spent))])
    return {measure: values[measure].tolist() for measure in spot["measures"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SPOTS, default=list(SPOTS))
    parser.add_argument("--policies", nargs="+", default=[])
    parser.add_argument("--processes", type=int, default=available_cores())
    parser.add_argument("--out", type=Path, default=Path("weak-spots.csv"))
    given = parser.parse_args()
    rows = read_rows(given.out, COLUMNS)
    done = {Cell(row["problem"], row["policy"], int(row["seed"])) for row in rows}
    cells = [
        Cell(problem, policy, REPORTED_FROM + group)
        for problem in given.only
        for group in range(SPOTS[problem]["replicas"] // SPOTS[problem]["group"])
        for policy in given.policies or READ["groups"][SPOTS[problem]["policies"]]
    ]
    with local_executor(given.processes) as executor:
        waiting = {executor.submit(play, cell): cell for cell in cells if cell not in done}
        for future in as_completed(waiting):
            found = [
                (*waiting[future], replica, measure, f"{value:.6g}")
                for measure, values in future.result().items()
                for replica, value in enumerate(values)
            ]
            append_rows(given.out, found)
    record_run(given.out)


if __name__ == "__main__":
    main()
