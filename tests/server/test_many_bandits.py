"""Many bandits in one server: a few threads, and no bandit stops the others."""

import threading
from threading import Event

from waiting import wait_until

from submax.bandit import declaring
from submax.bandit.declaring import declare, read_bandit
from submax.bandit.store import open_store
from submax.server import service as service_module

BANDITS = 10


def declared(store, *names):
    for name in names:
        declare(store, name, {"actions": ["A", "B"], "reward_wait": 0})


def decided(http, name):
    return http.post(f"/bandits/{name}/decide", json={}).status_code


def test_many_bandits_learn_with_the_threads_of_one(tmp_path, serving):
    few, many = open_store(tmp_path / "few.db"), open_store(tmp_path / "many.db")
    names = [f"b{number}" for number in range(BANDITS)]
    declared(few, "page")
    declared(many, *names)
    before = threading.active_count()
    serving(few)
    with_one = threading.active_count() - before
    http = serving(many)
    # A thread of another test may end meanwhile.
    assert threading.active_count() - before <= 2 * with_one
    for name in names:
        body = {"requests": [{}] * 120}
        made = http.post(f"/bandits/{name}/decide-many", json=body).json()["decisions"]
        rewards = [{"id": one["id"], "value": 1.0} for one in made]
        http.post(f"/bandits/{name}/reward-many", json={"rewards": rewards})
    for name in names:
        wait_until(lambda name=name: http.get(f"/bandits/{name}").json()["version"] >= 1)


def test_bandits_that_are_slow_or_damaged_do_not_stop_the_others(
    serving, store, monkeypatch, caplog
):
    monkeypatch.setattr(service_module, "SLOW_OPENING_SECONDS", 0.1)
    declared(store, "a", "bad", "slow", "z")
    store.execute([("update bandit set settings = '{}' where name = 'bad'", {})])
    go = Event()

    def slow(store, name):
        if name == "slow":
            go.wait(60)
        return read_bandit(store, name)

    monkeypatch.setattr(declaring, "read_bandit", slow)
    http = serving(store)
    wait_until(lambda: decided(http, "a") == decided(http, "z") == 200)
    assert decided(http, "slow") == 503
    wait_until(lambda: "the bandit bad" in caplog.text)
    assert decided(http, "bad") == 400
    go.set()
    wait_until(lambda: decided(http, "slow") == 200)
