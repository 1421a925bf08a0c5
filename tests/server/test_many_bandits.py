"""Many bandits in one server: a few threads, and no bandit stops the others."""

from threading import Event

from waiting import wait_until

from submax.bandit import declaring
from submax.bandit.declaring import declare, read_bandit
from submax.server import service as service_module


def declared(store, *names):
    for name in names:
        declare(store, name, {"actions": ["A", "B"], "reward_wait": 0})


def decided(http, name):
    return http.post(f"/bandits/{name}/decide", json={}).status_code


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
