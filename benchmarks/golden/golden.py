"""Golden files: what the library decides, estimates and simulates, as numbers.

A change of form must leave them as they are. ``make golden`` writes all files anew, and
``make golden ONLY=adaptive`` one of them: do so only if behaviour changes on purpose, and say why
in the commit. Numbers are compared to 1e-9.
"""

import gzip
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import submax
from submax import Arms, BatchedRewards, Binary, Box, Continuous, Feedback, Policy, Problem, Slots
from submax.evaluation import Log, compare
from submax.policies import presets

FOLDER = Path(__file__).parent
DIGITS, TOLERANCE, NETWORK_TOLERANCE = 10, 1e-9, 1e-4

# Streams of decisions -----------------------------------------------------------------------------

FEATURES = (((0.5, 0.0), (2.0, 1.0), (-1.0, 0.3)),)
PLAIN = {
    "arms": Problem(Arms(3)),
    "amounts": Problem(Arms(3), scale=Continuous()),
    "slots": Problem(Slots((3, 3))),
    "clicks": Problem(Slots((3, 3)), slot_scale=Binary()),
    "real": Problem(Box((0.0,), (1.0,))),
}
CONTEXTUAL = {
    "context": Problem(Arms(3), context_width=3),
    "described": Problem(Arms(3), 3, scale=Continuous(), action_features=FEATURES),
}
BATCHES = (*[10] * 19, *[1] * 10)
FEW_BATCHES = BATCHES[-15:]
"""60 decisions, in problems other than the first that a policy accepts."""


def feedback(problem: Problem, context: Any, chosen: Any, rng: np.random.Generator) -> Feedback:
    """Rewards are high near an action that depends on the context; each slot has one as well."""
    size, shape = np.array(problem.space.choices or (2,)), context.shape[:2]
    place = chosen.action if problem.space.reals else (chosen.action + 0.5) / size
    best = 0.6 + 0.3 * np.tanh(context.sum(axis=-1, keepdims=True))
    chance = 0.1 + 0.7 * np.exp(-8 * (place - best) ** 2)
    clicks = (rng.random(chance.shape) < chance).astype(float)
    amounts = chance.mean(axis=-1) + 0.3 * rng.normal(size=shape)
    reward = amounts if problem.scale == Continuous() else clicks.max(axis=-1)
    slots = clicks if problem.slot_scale else None
    return Feedback(context, chosen.action, reward, chosen.log_prob, np.ones(shape), slots)


def stream(policy: Policy[Any], problem: Problem, batches: tuple[int, ...]) -> dict[str, Any]:
    """Decisions and their probabilities; a reward is learned one batch later.

    At the end come the probabilities of all actions, and of two of them if no other is eligible.
    """
    rng, world = np.random.default_rng(1), np.random.default_rng(2)
    state, waiting = policy.init(problem, 1, rng), None
    actions, log_probs = [], []
    for rows in batches:
        context = world.normal(size=(1, rows, problem.context_width))
        chosen = policy.act(state, context, rng)
        if chosen.log_prob is None:
            chosen = chosen._replace(log_prob=policy.log_prob(state, context, chosen.action))
        state = policy.record(state, chosen.action)
        if waiting is not None:
            state = policy.update(state, waiting, rng)
        waiting = feedback(problem, context, chosen, world)
        actions.append(chosen.action[0])
        log_probs.append(chosen.log_prob[0])
    probabilities = np.exp(np.concatenate(log_probs))
    result = {"actions": np.concatenate(actions), "probabilities": probabilities}
    if not problem.space.reals:
        context = world.normal(size=(1, 2, problem.context_width))
        result["all"] = policy.probabilities(state, context)[0]
        smaller = policy.restricted(state, ((0, 2),) * problem.space.slots)
        result["eligible"] = None if smaller is None else policy.probabilities(smaller, context)[0]
    return result


def streams(policy: Policy[Any]) -> dict[str, Any]:
    """The streams in its problems; a stream like an earlier one is named, a refusal has a code."""
    results, batches = dict[str, Any](), BATCHES
    for name, problem in (CONTEXTUAL | PLAIN if policy.traits.uses_context else PLAIN).items():
        try:
            found = plain(stream(policy, problem, batches))
            results[name] = next((f"as {one}" for one in results if results[one] == found), found)
            batches = FEW_BATCHES
        except submax.InputError as error:
            results[name] = f"refused: {error.code}"
    return results


def network_stream(policy: Policy[Any]) -> dict[str, Any]:
    """Decisions after each of two updates by 100 rows of uniform choices, which are given."""
    problem = CONTEXTUAL["context"]
    rng, world = np.random.default_rng(1), np.random.default_rng(2)
    state, results = policy.init(problem, 1, rng), {}
    for number in range(2):
        context = world.normal(size=(1, 100, 3))
        action = problem.space.uniform((1, 100), world)
        logged = submax.ChosenActions(action, np.full((1, 100), -np.log(3)))
        state = policy.update(state, feedback(problem, context, logged, world), rng)
        chosen = policy.act(state, context, rng)
        probability = np.exp(policy.log_prob(state, context, chosen.action))
        results[f"update {number}"] = {"actions": chosen.action[0], "probabilities": probability[0]}
    return results


# Simulations --------------------------------------------------------------------------------------

COUNTING = (
    *("random", "epsilon-greedy-0.01", "epsilon-greedy-0.05", "epsilon-greedy-0.1"),
    *("epsilon-greedy-0.2", "ucb1", "thompson-1-1", "thompson-1-9", "thompson-1-99"),
    *("rcp-marginalized", "rcp-optimistic", "rcp-optimized", "rcp-submax"),
)
"""The policies of the Bernoulli experiments in the paper."""
ENVIRONMENTS: dict[str, dict[str, Any]] = {
    **{kind: {"arms": 4} for kind in ("bernoulli", "gaussian")},
    **{kind: {"arms": 4} for kind in ("poisson", "ratings", "drifting-bernoulli", "dueling")},
    "logistic-contextual": {},
    **{kind: {} for kind in ("contextual", "drifting-contextual", "cascade")},
    "sleeping-bernoulli": {"arms": 4, "sets": [[0, 1], [1, 2, 3]]},
    "combinatorial": {"sizes": [2, 4]},
    **{kind: {} for kind in ("smooth-reward", "pricing")},
}
DELAYS = (BatchedRewards(1), submax.Lag(7), submax.Geometric(5.0))


def ends(environment: Any, policy: str, **options: Any) -> list[float]:
    """The mean accumulated regret and reward at the end of ten replicas."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", submax.ContextIgnoredWarning)
        trace = submax.simulate(environment, submax.make_policy(policy), replicas=10, **options)
    return [trace.final_regret.mean(), trace.final_reward.mean()]


def sweep(policy: str) -> dict[str, Any]:
    """The 27 configurations of the paper, 1100 decisions each, and ten arms under each delay."""
    return {
        f"{arms} arms, beta {beta}, delay {size}": ends(
            submax.Bernoulli(arms, 1, beta), policy, observations=1100, delay=BatchedRewards(size)
        )
        for arms in (10, 100, 500)
        for beta in (1, 9, 99)
        for size in (100, 500, 1000)
    } | {
        repr(delay): ends(submax.Bernoulli(10), policy, observations=100, delay=delay, seed=1)
        for delay in DELAYS
    }


def environments() -> dict[str, Any]:
    """What uniform choice earns in every environment, 200 decisions."""
    make = submax.environments.ENVIRONMENTS.build
    return {
        kind: ends(make({"kind": kind, **parameters}, {}), "random", observations=200)
        for kind, parameters in ENVIRONMENTS.items()
    }


# Estimates from logs ------------------------------------------------------------------------------

LOGS = (
    *("plain", "context", "amounts", "clusters", "eligible", "no propensities"),
    *("counts", "sessions", "slots", "features", "sampled"),
)
INTERVALS = ("gamma", "normal", "sequential")


def log(name: str) -> Log:
    """A log of 240 rows with four actions; the name says what is special about it."""
    rng, rows = np.random.default_rng(LOGS.index(name)), 240
    age, land = rng.normal(size=rows), rng.choice(["de", "fr"], size=rows)
    tables = np.exp(0.5 * np.outer(age, [0, 1, -1, 0.5])) if name != "plain" else np.ones((rows, 4))
    may = rng.random((rows, 4)) < 0.8 if name == "eligible" else np.ones((rows, 4), dtype=bool)
    may[:, 0] = True
    tables = np.where(may, tables, 0) / np.where(may, tables, 0).sum(axis=1, keepdims=True)
    action = (tables.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1).clip(max=3)
    propensity = tables[np.arange(rows), action]
    chance = 0.2 + 0.15 * action * (land == "de")
    reward = (rng.random(rows) < chance).astype(float)
    table: dict[str, Any] = {"action": np.array(list("ABCD"))[action], "reward": reward}
    columns: dict[str, Any] = {}
    options: dict[str, Any] = {"actions": list("ABCD")}
    if name != "no propensities":
        table["propensity"] = propensity
    if name != "plain":
        table |= {"context_age": age, "context_land": land}
    if name == "amounts":
        table["reward"], options["rewards"] = reward * rng.gamma(2, 5, size=rows), "continuous"
    elif name in ("clusters", "sessions"):
        table["who"], columns = np.arange(rows) // 3, {name.rstrip("s"): "who"}
    elif name == "eligible":
        table["eligible"] = ["|".join(np.array(list("ABCD"))[row]) for row in may]
    elif name == "counts":
        del table["reward"]
        table |= {"n": 1 + rng.integers(5, size=rows)}
        table |= {"k": rng.binomial(table["n"], chance)}
        columns = {"count": "n", "successes": "k"}
    elif name == "slots":
        del table["action"], options["actions"]
        table |= {"action_size": np.array(["S", "L"])[action // 2]}
        table |= {"action_colour": np.array(["red", "blue"])[action % 2]}
    elif name == "features":
        options["action_features"] = {"A": {"x": 0}, "B": {"x": 0}, "C": {"x": 1}, "D": {"x": 1}}
    elif name == "sampled":
        table |= {"kept": 1 + reward, "before": age + rng.normal(size=rows)}
        columns = {"weight": "kept", "covariate": "before"}
    return Log.read(table, columns=columns, **options)


def estimates(name: str) -> dict[str, Any]:
    """All numbers of a comparison by every estimator that applies; warnings are counted."""
    policies = ["linucb", "linucb@greedy", "rcp-submax", *["always=*"][name == "slots" :]]
    interval = INTERVALS[LOGS.index(name) % len(INTERVALS)]
    slices = [] if name == "plain" else ["land"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", submax.ContextIgnoredWarning)
        found = compare(log(name), policies, interval=interval, slices=slices)
    rows = [row for table in ("estimates", "slices", "differences") for row in found.rows(table)]
    for row in rows:
        row["warnings"] = len(list(filter(None, row.get("warnings", "").split(" | "))))
    return {"interval": interval, "notes": len(found.notes), "rows": rows}


# The files, and how they are compared -------------------------------------------------------------


def entries() -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Yield each file, the name of an entry in it, and the function that computes the entry."""
    for name, policy in presets().items():
        if policy.traits.trains_models:
            yield "networks", name, lambda policy=policy: network_stream(policy)
        elif name == "rcp-adaptive":
            yield "adaptive", "streams", lambda policy=policy: streams(policy)
        else:
            yield "streams", name, lambda policy=policy: streams(policy)
    yield "adaptive", "finals", lambda: sweep("rcp-adaptive")
    for name in COUNTING:
        yield "finals", name, lambda name=name: sweep(name)
    yield "finals", "environments", environments
    for name in LOGS:
        yield "estimates", name, lambda name=name: estimates(name)


def plain(value: Any) -> Any:
    """The value as JSON has it: lists, and numbers of ten digits."""
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(one) for one in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{DIGITS}g}")
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (int, str, type(None))) else str(value)


def different(expected: Any, found: Any, tolerance: float, at: str = "") -> Iterator[str]:
    """Yield where two values differ, and how."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in sorted(expected.keys() ^ found.keys()):
            yield f"{at}/{name}: {'missing' if name in expected else 'new'}"
        for name in expected.keys() & found.keys():
            yield from different(expected[name], found[name], tolerance, f"{at}/{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for place, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from different(one, other, tolerance, f"{at}[{place}]")
    elif is_number(expected) and is_number(found):
        both_nan = math.isnan(expected) and math.isnan(found)
        if not both_nan and not math.isclose(expected, found, rel_tol=tolerance, abs_tol=tolerance):
            yield f"{at}: {expected} became {found}"
    elif expected != found:
        yield f"{at}: {expected!r:.80} became {found!r:.80}"


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def read(file: str) -> dict[str, Any]:
    with gzip.open(FOLDER / f"{file}.json.gz", "rt", encoding="utf-8") as opened:
        return json.load(opened)


def cases() -> Iterator[Any]:
    for file, name, compute in entries():
        marks = {"networks": pytest.mark.soak, "adaptive": pytest.mark.slow}.get(file, ())
        yield pytest.param(file, name, compute, id=f"{file}-{name}", marks=marks)


@pytest.mark.parametrize(("file", "name", "compute"), list(cases()))
def test_nothing_has_changed(file, name, compute):
    tolerance = NETWORK_TOLERANCE if file == "networks" else TOLERANCE
    found = list(different(read(file)[name], plain(compute()), tolerance))
    assert not found, f"{len(found)} differences:\n" + "\n".join(found[:10])


def write(only: list[str]) -> None:
    """Write the files anew, or only those that are named."""
    computed: dict[str, dict[str, Any]] = {}
    for file, name, compute in entries():
        if not only or file in only:
            computed.setdefault(file, {})[name] = plain(compute())
    for file, values in computed.items():
        text = json.dumps(values, sort_keys=True, separators=(",", ":"))
        (FOLDER / f"{file}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    import conftest  # noqa: F401 - networks are compiled as in the tests: this moves their digits

    write(sys.argv[1:])
