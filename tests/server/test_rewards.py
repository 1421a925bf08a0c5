"""Rewards with names, slots and keys, and those that wait for their decisions."""

import pytest
from waiting import wait_until

from submax.bandit.tables import MAX_EARLY_OF_SOURCE

DROPPED = 'submax_events_total{bandit="page",kind="dropped_from_quarantine"} 2000.0'


def test_rewards_of_unknown_decisions_are_bounded_for_each_key(serving, store, key):
    admin, good, bad = key("admin"), key("reward"), key("reward")
    http = serving(store)
    http.post("/bandits", json={"name": "page", "actions": ["A"]}, headers=admin)
    early = http.post("/bandits/page/reward", json={"id": "early", "value": 1}, headers=good)
    assert early.json()["status"] == "quarantined"
    for begin in range(0, MAX_EARLY_OF_SOURCE + 2000, 1000):
        rewards = [{"id": f"none-{begin + one}", "value": 1} for one in range(1000)]
        http.post("/bandits/page/reward-many", json={"rewards": rewards}, headers=bad)
    wait_until(lambda: DROPPED in http.get("/metrics", headers=admin).text)
    counts = http.get("/bandits/page", headers=admin).json()["counts"]
    assert counts["dropped from quarantine"] == 2000
    assert counts["rewards"] == MAX_EARLY_OF_SOURCE + 1
    http.post("/bandits/page/decide", json={"id": "early"}, headers=admin)
    again = http.post("/bandits/page/reward", json={"id": "early", "value": 1}, headers=good)
    assert again.json()["status"] == "accepted"


@pytest.mark.parametrize("has_keys", [False, True])
def test_a_reward_names_the_key_that_sent_it(serving, store, key, has_keys):
    headers = key("admin") if has_keys else {}
    number = headers["authorization"].split(".")[1] if has_keys else ""
    http = serving(store)
    http.post("/bandits", json={"name": "page", "actions": ["A"]}, headers=headers)
    http.post("/bandits/page/reward", json={"id": "one", "value": 1}, headers=headers)
    assert store.select("select value, source from early_reward") == [(1.0, number)]
