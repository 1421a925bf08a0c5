"""Several rewards in one log."""

import numpy as np
import pytest
from refusals import raises_code

from submax.evaluation import Log, compare, compare_rewards, learn

ROWS = 300


@pytest.fixture
def table(seed):
    rng = np.random.default_rng(seed)
    arm = rng.integers(2, size=ROWS)
    return {
        "action": np.array(["A", "B"])[arm],
        "click": (rng.random(ROWS) < 0.4 - 0.2 * arm) * 1,
        "buy": (rng.random(ROWS) < 0.1 + 0.3 * arm) * 1,
        "minutes": rng.gamma(2.0, 1.0, ROWS),
        "propensity": np.full(ROWS, 0.5),
    }


def several(table, *names):
    return Log.read(table, columns={"reward": list(names)})


WEIGHTS = {"profit": {"click": 0.5, "buy": 20.0}}


def test_each_reward_is_evaluated_as_if_it_were_alone(table):
    policies = {"p": np.tile([0.2, 0.8], (ROWS, 1))}
    found = compare_rewards(
        several(table, "click", "buy"), policies, combinations=WEIGHTS, estimators=["ips", "dr"]
    )
    profit = 0.5 * table["click"] + 20 * table["buy"]
    for name, reward in {"click": table["click"], "buy": table["buy"], "profit": profit}.items():
        declared = (
            {"kind": "continuous", "low": 0.0, "high": 20.5} if name == "profit" else "binary"
        )
        alone = Log.read({**table, "reward": reward}, rewards=declared, columns={"context": None})
        wanted = compare(alone, policies, estimators=["ips", "dr"])
        assert found[name].estimates == wanted.estimates
    assert [*found] == ["click", "buy", "profit"]


def test_policies_learn_from_one_reward_and_are_evaluated_by_all(table, mentioned):
    log = several(table, "click", "buy")
    by_click = compare_rewards(log, ["rcp-submax"], estimators=["snips"])
    by_buy = compare_rewards(log, ["rcp-submax"], estimators=["snips"], learn_from="buy")
    earned = [found["buy"].find("rcp-submax", "snips").value for found in (by_click, by_buy)]
    assert earned[1] > earned[0]
    assert mentioned(by_buy["click"].notes[-1:], "buy", 150)
    # The policy that learned from purchases is that of a log of purchases alone.
    alone = Log.read(table, columns={"reward": "buy"})
    wanted = compare(alone, ["rcp-submax"], estimators=["snips"]).find("rcp-submax", "snips")
    assert earned[1] == wanted.value


def test_rows_from_which_a_policy_has_learned_are_left_out(table):
    log = several(table, "click", "buy")
    learned = learn(log, "rcp-submax", share=0.4)
    found = compare_rewards(log, {"p": learned}, estimators=["ips"])
    assert found["buy"].estimates[0].diagnostics.rows == 180
    with raises_code("invalid-input", "policies"):
        compare_rewards(log, {"p": learn(log, "rcp-submax")}, estimators=["ips"])


def test_arrays_beside_policies_that_learn(table, seed):
    log = several(table, "click", "minutes")
    array = np.random.default_rng(seed).dirichlet([1.0, 1.0], ROWS)
    found = compare_rewards(log, {"given": array, "rcp": "rcp-submax"}, estimators=["ips"])
    action = log.action[150:, 0].astype(int)
    terms = 2 * array[np.arange(150, 300), action] * table["minutes"][150:]
    assert found["minutes"].find("given", "ips").value == pytest.approx(terms.mean())


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"combinations": {"click": {"buy": 1.0}}}, "combinations"),
        ({"combinations": {"all": {}}}, "reward"),
        ({"combinations": {"all": {"bye": 1.0}}}, "reward"),
        ({"learn_from": "minutes"}, "learn_from"),
    ],
)
def test_unknown_rewards_are_refused(table, options, parameter):
    with raises_code("invalid-input", parameter):
        compare_rewards(several(table, "click", "buy"), ["rcp-submax"], **options)


def test_a_log_with_one_reward_is_refused(table):
    log = Log.read(table, columns={"reward": "click"})
    with raises_code("invalid-input", "reward"):
        log.with_reward("click")
    with raises_code("invalid-input", "learn_from"):
        compare_rewards(log, ["rcp-submax"])
