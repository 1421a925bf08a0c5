"""Sessions, in which a decision changes what comes after."""

import numpy as np
import pytest
from refusals import raises_code

from submax.evaluation import Log, compare, make_off_policy
from submax.evaluation.estimators import Evidence
from submax.evaluation.log import divided, trajectory_weights

FIRST, SECOND = np.array([0.2, 0.7]), np.array([[0.1, 0.6], [0.9, 0.3]])
ENDS = np.array([0.7, 0.2])
"""The chance that a session ends after its first action."""


def every_session(logging, policy):
    """All sessions of up to two steps, each with its probability in the log."""
    rows, number = [], 0
    for a in (0, 1):
        for r in (0, 1):
            of_first = logging[a] * (FIRST[a] if r else 1 - FIRST[a])
            ended = of_first * ENDS[a]
            rows.append((number, policy[a] / logging[a], r, ended))
            number += 1
            for b in (0, 1):
                for s in (0, 1):
                    chance = SECOND[a, b] if s else 1 - SECOND[a, b]
                    whole = of_first * (1 - ENDS[a]) * logging[b] * chance
                    rows.append((number, policy[a] / logging[a], r, whole))
                    rows.append((number, policy[b] / logging[b], s, whole))
                    number += 1
    return map(np.array, zip(*rows, strict=True))


def reward_per_decision(policy):
    earned = policy @ FIRST + (policy * (1 - ENDS)) @ SECOND @ policy
    return earned / (1 + policy @ (1 - ENDS))


def test_session_estimators_have_the_right_expectation_and_others_do_not():
    logging, policy = np.array([0.6, 0.4]), np.array([0.1, 0.9])
    session, weight, reward, probability = every_session(logging, policy)
    products = trajectory_weights(weight, session)
    blank = np.zeros(len(weight))
    evidence = Evidence(reward, weight, blank, blank, blank, counts=probability, sessions=products)
    wanted = reward_per_decision(policy)
    for name in ("per-decision", "trajectory"):
        assert make_off_policy(name).terms(evidence).value == pytest.approx(wanted)
    # Row by row, a later step counts although the policy would have come there differently.
    for name in ("ips", "snips"):
        assert abs(make_off_policy(name).terms(evidence).value - wanted) > 0.01
    assert products[:, 1] @ (probability * reward) == pytest.approx(
        wanted * (products[:, 0] @ probability)
    )


def table_of(rng, sessions=80, steps=3):
    action = rng.integers(2, size=sessions * steps)
    return {
        "action": np.array(["A", "B"])[action],
        "reward": rng.integers(2, size=sessions * steps),
        "propensity": np.full(sessions * steps, 0.5),
        "visit": np.repeat(np.arange(sessions), steps),
    }


def test_a_log_with_sessions_is_evaluated_by_session(seed, mentioned):
    table = table_of(np.random.default_rng(seed), sessions=200)
    log = Log.read(table, columns={"session": "visit"})
    policy = {"p": np.tile([0.4, 0.6], (len(log), 1))}
    found = compare(log, policy)
    assert {"per-decision", "trajectory"} <= set(found.estimators())
    assert mentioned(found.notes, 200)
    weight = np.where(table["action"] == "A", 0.8, 1.2).reshape(200, 3)
    through = np.cumprod(weight, axis=1)
    before = np.concatenate([np.ones((200, 1)), through[:, :-1]], axis=1)
    reward = table["reward"].reshape(200, 3)
    wanted = (through * reward).sum() / before.sum()
    # Others assume that a decision does not change what follows, so they have a warning.
    best = found.recommended()[1]
    assert (best.estimator, best.cautions) == ("per-decision", ())
    assert found.find("p", "snips").cautions
    assert best.value == pytest.approx(wanted)
    # The log itself: all weights are 1.
    even = {"p": np.tile([0.5, 0.5], (len(log), 1))}
    same = compare(log, even, estimators=["per-decision"], interval="normal")
    one, logged = same.find("p", "per-decision"), same.estimates[0]
    assert one.value == pytest.approx(logged.value)
    assert one.interval == pytest.approx(logged.interval)


def test_what_needs_sessions_is_refused_without(seed):
    table = table_of(np.random.default_rng(seed))
    log = Log.read(table, columns={"context": None})
    policy = {"p": np.tile([0.4, 0.6], (len(log), 1))}
    with raises_code("invalid-input", "estimators"):
        compare(log, policy, estimators=["per-decision"])
    with raises_code("invalid-input", "session"):
        Log.read({**table, "n": np.ones(240)}, columns={"session": "visit", "count": "n"})


def test_long_sessions_are_not_estimated_by_products_of_weights(seed):
    table = table_of(np.random.default_rng(seed), sessions=40, steps=30)
    log = Log.read(table, columns={"session": "visit"})
    found = compare(log, {"p": np.tile([0.2, 0.8], (len(log), 1))})
    one = found.recommended()[1]
    assert one.estimator == "dr"
    # It has the warning of all estimators of single decisions, and the products have more.
    assert len(found.find("p", "per-decision").cautions) > len(one.cautions) == 1


@pytest.mark.parametrize("by", ["time", "random"])
def test_parts_of_a_cross_validation_divide_no_session_and_no_cluster(rng, by, seed):
    table = table_of(rng)
    sessions = Log.read(table, columns={"session": "visit"})
    assert np.all(np.ptp(divided(sessions, [0.25] * 4, by, seed).part.reshape(80, 3), axis=1) == 0)
    one = Log.read(table_of(rng, 1), columns={"session": "visit"})
    with raises_code("invalid-input"):
        one.split(0.5)
    clusters = Log.read(
        {**table, "visit": rng.permutation(table["visit"])}, columns={"cluster": "visit"}
    )
    found = divided(clusters, [0.25] * 4, "random", seed)
    for one in range(80):
        assert np.ptp(found.part[found.log.cluster == one]) == 0
