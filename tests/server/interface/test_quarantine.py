"""What is dropped from quarantine is counted, and one key drops only its own."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from submax.live.log.collecting import quarantine
from submax.live.log.records import RewardGiven, body_of
from submax.web.server.access.key_registry import KeyRegistry

KIND = "dropped_from_quarantine"


def dropped(http, headers):
    """The count in the metrics."""
    families = text_string_to_metric_families(http.get("/metrics", headers=headers).text)
    return sum(
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "submax_events_total" and sample.labels["kind"] == KIND
    )


def test_rewards_of_unknown_decisions_are_bounded_for_each_key(
    serving, store, eventually, monkeypatch
):
    monkeypatch.setattr(quarantine, "MAX_WAITING", 1500)
    monkeypatch.setattr(quarantine, "MAX_WAITING_OF_KEY", 1000)
    registry = KeyRegistry(store)
    admin, good, bad = (
        {"authorization": f"Bearer {registry.add([scope])[1]}"}
        for scope in ("admin", "reward", "reward")
    )
    http = serving(store)
    http.post("/bandits", json={"name": "page", "actions": ["A"]}, headers=admin)
    early = http.post("/bandits/page/reward", json={"id": "early", "value": 1}, headers=good)
    assert early.json()["status"] == "quarantined"
    for begin in range(0, 5000, 1000):
        rewards = [{"id": f"none-{begin + one}", "value": 1} for one in range(1000)]
        http.post("/bandits/page/reward-many", json={"rewards": rewards}, headers=bad)
    eventually(lambda: dropped(http, admin) == 4000)
    counts = http.get("/bandits/page", headers=admin).json()["counts"]
    assert counts["dropped from quarantine"] == 4000
    assert counts["rewards"] == 5001
    http.post("/bandits/page/decide", json={"id": "early"}, headers=admin)
    again = http.post("/bandits/page/reward", json={"id": "early", "value": 1}, headers=good)
    assert again.json()["status"] == "accepted"


@pytest.mark.parametrize("keys", [False, True])
def test_a_reward_names_the_key_that_sent_it(serving, store, keys):
    number, headers = "", {}
    if keys:
        number, text = KeyRegistry(store).add(["admin"])
        headers = {"authorization": f"Bearer {text}"}
    http = serving(store)
    http.post("/bandits", json={"name": "page", "actions": ["A"]}, headers=headers)
    http.post("/bandits/page/reward", json={"id": "one", "value": 1}, headers=headers)
    (event,) = store.read("page/log")
    assert body_of(event, RewardGiven) == RewardGiven(1.0, number)
