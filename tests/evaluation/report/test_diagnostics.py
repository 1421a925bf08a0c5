"""How far numbers can be trusted: diagnostics, the kinds of warnings, what is recommended."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor

from logs import log_of_arrays
from submax.evaluation import Log, compare, learn
from submax.evaluation.report import Estimate, recommended
from submax.statistics.intervals import INTERVALS, ConfidenceInterval

ARMS = ["A", "B", "C"]
LOGS = 60
KINDS = {
    ("dm", "ips", "pseudo-inverse", "replay"): "all",
    ("ips", "replay"): "weights",
    ("ips", "pseudo-inverse"): "propensities",
    ("dm",): "model",
    ("pseudo-inverse",): "slots",
    ("replay",): "replay",
}
"""A warning is of a kind by the estimators that have it."""


def log_of(rng, rows=2000, chances=(0.5, 0.3, 0.2), reward=None):
    action = rng.choice(3, size=rows, p=chances)
    return log_of_arrays(
        np.array(ARMS)[action],
        (rng.random(rows) < 0.2 + 0.2 * action) * 1.0 if reward is None else reward,
        propensity=np.array(chances)[action],
        actions=ARMS,
    )


def slots_of(rng, chances, rows=2000, logged=True):
    """Two slots, chosen together with these ``chances [3, 2]``."""
    joint = rng.choice(6, size=rows, p=np.ravel(chances))
    action = np.stack(np.unravel_index(joint, (3, 2)), axis=1)
    table = {"action_s": action[:, 0], "action_t": action[:, 1], "reward": rng.random(rows)}
    table["propensity"] = np.ravel(chances)[joint]
    if logged:
        table["propensity_s"] = np.sum(chances, axis=1)[action[:, 0]]
        table["propensity_t"] = np.sum(chances, axis=0)[action[:, 1]]
    return Log.read(table)


def of_weights(weight, reward=None):
    """A log of two arms, and a policy that takes both equally often with these weights."""
    weight = np.asarray(weight, dtype=float)
    action = np.arange(len(weight)) // 2 % 2
    reward = np.arange(len(weight)) % 2 if reward is None else reward
    return log_of_arrays(action, reward, propensity=0.5 / weight)


def found_for(log, policy=None, model=None):
    """A comparison with a policy, by default the uniform one, by estimators of all kinds."""
    size = log.schema.problem.space.size
    table = np.full(size, 1 / size) if policy is None else np.asarray(policy)
    if table.ndim == 1:
        table = np.tile(table, (len(log), 1))
    estimators = ["dm", "ips", "replay"]
    if len(log.schema.menu.slots) > 1:
        estimators.append("pseudo-inverse")
    return compare(log, {"p": table}, estimators=estimators, reward_model=model or DummyRegressor())


def cautions_of(found):
    """All warnings about the policy, and which estimators have each of them."""
    having = {}
    for one in found.estimates[1:]:
        for sentence in one.cautions:
            having.setdefault(sentence, set()).add(one.estimator)
    return having


def kinds(log, policy=None, model=None):
    """How many warnings of each kind there are."""
    found = found_for(log, policy, model)
    used = set(found.estimators()[1:])
    known = {frozenset(used.intersection(names)): kind for names, kind in KINDS.items()}
    return Counter(known[frozenset(having)] for having in cautions_of(found).values())


# Numbers


def test_diagnostics_are_those_of_the_weights():
    log = log_of_arrays(
        ["A", "B", "B", "A"],
        [0, 1, 0, 0],
        propensity=[0.5, 0.8, 0.25, 0.5],
        actions=["A", "B", "C"],
    )
    table = np.array([[0.0, 1.0, 0.0], [0.2, 0.8, 0.0], [0.0, 0.75, 0.25], [0.0, 1.0, 0.0]])
    found = found_for(log, table).find("p", "ips").diagnostics
    assert found.rows == 4
    assert found.effective == pytest.approx(16 / 10)
    assert (found.largest, found.largest_share) == pytest.approx((3.0, 0.75))
    assert found.mean_weight == pytest.approx(1.0)
    assert found.mean_error == pytest.approx(np.sqrt(6 / 4) / 2)
    assert found.unsupported == pytest.approx(0.25 / 4)
    # A quarter of the weight has another reward than 0.
    assert (found.usual, found.effective_rewards) == (0.0, pytest.approx(0.25 * 16 / 10))
    nothing = found_for(log, [0.0, 0.0, 1.0]).find("p", "ips").diagnostics
    assert (nothing.effective, nothing.largest, nothing.largest_share) == (0.0, 0.0, 0.0)


def test_the_inverse_propensities_of_a_choice_add_up_to_the_rows_in_which_it_was_eligible(rng):
    rows = 3000
    both = rng.random(rows) < 0.5
    action = np.where(both, rng.integers(2, size=rows), 0)
    table = {
        "action": np.array(["A", "B"])[action],
        "reward": rng.integers(2, size=rows),
        "propensity": np.where(both, 0.5, 1.0),
        "eligible": [["A", "B"] if one else ["A"] for one in both],
    }
    found = compare(Log.read(table), ["always=*"], reward_model=DummyRegressor())
    checked = {one.action: one for one in found.actions}
    inverse = np.where(both, 2.0, 1.0)
    assert checked["A"].ratio == pytest.approx(inverse[action == 0].sum() / rows)
    assert checked["B"].ratio == pytest.approx(inverse[action == 1].sum() / both.sum())
    assert checked["A"].plausible
    assert checked["B"].plausible


# Kinds of warnings


def test_a_good_log_gives_no_caution_but_that_of_the_model(rng):
    assert kinds(log_of(rng, chances=(1 / 3,) * 3)) == {"model": 1}
    assert kinds(log_of(rng)) == {"model": 1, "replay": 1}


@pytest.mark.slow
def test_correct_logs_are_hardly_ever_doubted(seed):
    """Propensities that depend on the context, down to 0.03; fewer than 2 in 100 are doubted."""
    doubted = np.zeros(2)
    for number in range(LOGS):
        rng = np.random.default_rng([seed, number])
        x = rng.normal(size=(2000, 2))
        score = np.exp(x @ rng.normal(size=(2, 3)))
        chances = 0.9 * score / score.sum(axis=1, keepdims=True) + 0.1 / 3
        action = (rng.random((2000, 1)) > chances.cumsum(axis=1)).sum(axis=1).clip(0, 2)
        log = log_of_arrays(
            np.array(ARMS)[action],
            (rng.random(2000) < 0.3 + 0.2 * (action == 1)) * 1.0,
            propensity=chances[np.arange(2000), action],
            context=x,
            actions=ARMS,
        )
        learned = learn(log, "rcp-submax").probabilities(log.parts[0].context)
        for place, policy in enumerate((None, learned)):
            doubted[place] += bool(set(kinds(log, policy)) - {"replay", "model"})
    assert np.all(doubted < 0.02 * LOGS + 3 * np.sqrt(0.02 * LOGS)), doubted


def test_actions_that_the_log_never_has(rng, mentioned):
    log = log_of(rng, chances=(0.6, 0.4, 0.0))
    assert kinds(log) == {"model": 1, "replay": 1, "all": 1, "weights": 1}
    assert mentioned(cautions_of(found_for(log)), "33%", "C")
    assert kinds(log, [0.5, 0.5, 0.0]) == {"model": 1, "replay": 1}
    assert kinds(log.rows(log.action[:, 0] == 0), [1.0, 0.0, 0.0])["all"] == 0


def test_actions_without_a_chance_in_some_contexts(rng):
    forced = rng.random(2000) < 0.3
    action = np.where(forced, 0, rng.integers(3, size=2000))
    log = log_of_arrays(
        np.array(ARMS)[action],
        rng.integers(2, size=2000),
        propensity=np.where(forced, 1.0, 1 / 3),
        context=forced[:, None] * 1.0,
    )
    assert kinds(log)["weights"] == 1
    assert kinds(log)["all"] == 0


def test_wrong_propensities(rng, mentioned):
    log = log_of(rng)
    for wrong in (np.full(2000, 1 / 3), log.propensity / 2, np.sqrt(log.propensity)):
        assert kinds(replace(log, propensity=wrong))["propensities"] == 1
    assert kinds(replace(log, propensity=log.propensity / 2))["weights"] == 1
    tiny = log.propensity.copy()
    tiny[0] = 1e-5
    assert mentioned(cautions_of(found_for(replace(log, propensity=tiny))), "1e-05")
    unknown = replace(log, propensity=np.full(2000, np.nan))
    assert kinds(unknown)["propensities"] == 1
    one_action = log_of_arrays(np.zeros(500, int), rng.integers(2, size=500))
    one_action = replace(one_action, propensity=np.full(500, 0.6))
    assert kinds(one_action) == {"all": 1, "propensities": 1, "weights": 1, "model": 1}


def test_densities_are_checked_by_the_width_of_the_interval(rng):
    title = rng.integers(2, size=2000)
    table = {"action_title": np.array(["A", "B"])[title], "reward": rng.random(2000)}
    table |= {"action_price": rng.uniform(2, 10, 2000), "propensity": np.full(2000, 0.5 / 8)}
    log = Log.read(table, actions={"title": ["A", "B"], "price": (2, 10)})
    for factor, warnings in ((1, 0), (2, 1)):
        changed = replace(log, propensity=factor * log.propensity)
        found = compare(changed, ["random"], estimators=["ips"], by="random")
        assert bool(found.find("random", "ips").cautions) == bool(warnings)


def test_rare_rows_that_did_not_come_are_no_proof(rng):
    """With a propensity of 0.001 two of 2000 rows are expected, and none occurred."""
    log = log_of(rng, chances=(0.998, 0.001, 0.001))
    rare = log.rows(log.action[:, 0] == 0)
    rare.propensity[0] = 0.001
    # The rows are worth none of the policy, which is the only warning about its weights.
    assert kinds(rare, [0.0, 0.5, 0.5])["weights"] == 1


def of_rare_action(taken):
    """A log that took the action of a policy, which always takes it, in this many rows."""
    action = np.arange(40_000) < taken
    share = taken / 40_000
    return log_of_arrays(
        action * 1, np.arange(40_000) % 2, propensity=np.where(action, share, 1 - share)
    )


def of_one_large_weight(largest):
    weight = np.full(500, (500 - largest) / 499)
    weight[0] = largest
    return of_weights(weight)


@pytest.mark.parametrize(
    ("log", "policy", "warned"),
    [
        (lambda: of_weights(np.ones(92)), None, True),
        (lambda: of_weights(np.ones(112)), None, False),
        (lambda: of_rare_action(300), [0.0, 1.0], True),
        (lambda: of_rare_action(500), [0.0, 1.0], False),
        (lambda: of_one_large_weight(30.0), None, True),
        (lambda: of_one_large_weight(10.0), None, False),
    ],
    ids=["few rows", "enough rows", "few of many", "enough of many", "one large", "none large"],
)
def test_few_rows_that_count(log, policy, warned):
    assert kinds(log(), policy)["weights"] == warned


def test_slots_that_were_not_chosen_independently(rng):
    together = np.array([[0.3, 0.05], [0.05, 0.3], [0.15, 0.15]])
    apart = np.outer([0.5, 0.3, 0.2], [0.6, 0.4])
    assert kinds(slots_of(rng, together))["slots"] == 1
    assert kinds(slots_of(rng, apart)) == {"replay": 1, "model": 1}
    # The propensities of slots are known for an even log, and estimated for another one.
    assert kinds(slots_of(rng, np.full((3, 2), 1 / 6), logged=False)) == {"model": 1}
    assert kinds(slots_of(rng, apart, logged=False))["slots"] == 1


def test_rewards_that_contradict_the_model(rng, mentioned):
    log = log_of(rng, chances=(1 / 3,) * 3)
    wrong = DummyRegressor(strategy="constant", constant=0.0)
    found = found_for(log, model=wrong)
    off = found.find("p", "ips").value
    assert mentioned(found.find("p", "dm").cautions, f"{off:+.2g}")
    assert kinds(log, model=wrong) == {"model": 1}


# Rare and huge rewards


@pytest.mark.parametrize(("earning", "expected"), [(0, True), (9, True), (10, False)])
def test_few_rewards(earning, expected):
    reward = np.zeros(500)
    reward[:earning] = 1.0
    log = of_weights(np.ones(500), reward)
    assert kinds(log)["all"] == expected
    about = found_for(log).find("p", "ips").diagnostics
    assert about.effective_rewards == pytest.approx(earning)


def test_a_log_without_any_reward_has_intervals(rng):
    found = compare(log_of(rng, 4000, (0.25, 0.25, 0.5), np.zeros(4000)), ["random"])
    for one in found.estimates:
        assert one.value == 0.0
        assert len(one.cautions) >= 1
        if one.estimator != "dm":
            assert one.interval.low == 0.0
            # Fewer than 1 in 2000 rows had a reward; the exact upper bound is 3.7 / 2000.
            assert 0.0005 < one.interval.high < 0.01


def test_one_huge_reward_has_a_caution_and_rare_ones_are_no_outliers(rng, mentioned):
    rewards = (rng.random(2000) < 0.3) * 1.0
    for huge in (1, 2):
        rewards[-huge:] = 1e6
        found = found_for(log_of(rng, reward=rewards))
        assert all(mentioned(one.cautions, "1e+06") for one in found.estimates)
    rare = np.zeros(2000)
    rare[-2:] = 1.0
    # There is one warning, that of rare rewards.
    assert kinds(log_of(rng, reward=rare))["all"] == 1


@pytest.mark.parametrize("interval", INTERVALS)
def test_the_value_is_inside_of_its_interval_and_of_the_bounds(interval, mentioned):
    # In the second half 6 of 10 rows took the better action, which was expected in 5 of 10.
    action = np.array([0, 1] * 50 + [1, 0, 1, 0, 1, 0, 1, 0, 1, 1] * 10)
    log = log_of_arrays(action, action, propensity=np.full(200, 0.5), rewards="binary")
    found = compare(log, ["rcp-submax"], interval=interval)
    for one in found.estimates:
        assert 0.0 <= one.interval.low <= one.value <= one.interval.high <= 1.0
    one = found.find("rcp-submax", "ips")
    assert one.value == 1.0
    # The warning says what the estimate was before it was cut.
    assert mentioned(one.cautions, "1.2")


def test_an_interval_with_a_threshold_contains_that_without_it(rng):
    for interval in INTERVALS:
        found = compare(
            log_of(rng, 400), {"p": np.tile([0.1, 0.2, 0.7], (400, 1))}, interval=interval
        )
        for name, without in (("clipped", "ips"), ("switch-dr", "dr"), ("dr-shrinkage", "dr")):
            for tables in (found.find, found.difference):
                wide, own = (tables("p", one).interval for one in (name, without))
                # Where the threshold cuts nothing off, both are the same but for rounding.
                assert wide.low - 1e-12 <= own.low <= own.high <= wide.high + 1e-12


# What is recommended


def best(*estimates):
    """The recommended one of estimates, given by their names, warnings and values."""
    made = [
        Estimate("p", name, value, ConfidenceInterval(0.0, 1.0), None, None, ("?",) * cautions)
        for name, cautions, value in estimates
    ]
    return recommended(made).estimator


def test_the_fewest_warnings_decide_and_then_the_order():
    assert best(("ips", 0, 0.5), ("snips", 0, 0.5), ("dr", 0, 0.5)) == "dr"
    assert best(("ips", 0, 0.5), ("snips", 0, 0.5), ("dr", 1, 0.5)) == "snips"
    assert best(("ips", 2, 0.5), ("snips", 3, 0.5), ("dr", 3, 0.5)) == "ips"
    # dm only alone, estimates without a value never, and other parameters last.
    assert best(("dm", 0, 0.5), ("ips", 5, 0.5)) == "ips"
    assert best(("dm", 1, 0.5)) == "dm"
    assert best(("dr", 0, float("nan")), ("ips", 4, 0.5)) == "ips"
    assert best(("ClippedInversePropensity(threshold=2.0)", 0, 0.5), ("replay", 0, 0.5)) == "replay"


@pytest.mark.parametrize("role", ["cluster", "weight"])
def test_right_propensities_are_not_doubted_in_clusters_and_samples(role, seed):
    """Users keep one draw, or the log has a tenth of the rows without reward; arm 1 earns 0.2."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(150), rng.integers(1, 40, size=150))
    draw = rng.integers(2, size=150)[user] if role == "cluster" else rng.integers(2, size=len(user))
    reward = (rng.random(len(user)) < 0.1 + 0.1 * draw).astype(float)
    weight = np.where((reward == 1) | (role == "cluster"), 1.0, 10.0)
    kept = rng.random(len(user)) < 1 / weight
    table = {"action": draw, "reward": reward, "user": user, "weight": weight}
    table = {name: column[kept] for name, column in table.items()} | {
        "propensity": [0.5] * sum(kept)
    }
    columns = {role: "user" if role == "cluster" else role}
    found = compare(Log.read(table, columns=columns), ["always=1"], estimators=["snips", "dm"])
    assert not [one for one in found.find("always=1", "snips").cautions if "propensities" in one]
    assert abs(found.find("always=1", "dm").value - 0.2) < 6 * np.sqrt(0.16 / (sum(kept) / 4))
