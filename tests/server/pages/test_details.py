"""Single decisions are found with their reasons, and winners are named for each context."""

import numpy as np
import pytest
from submax.testing.stores import ManualClock

from submax.live.archive.compacting.compaction import Compaction
from submax.live.bandits.open import open_bandit
from submax.live.store.memory_store import MemoryStore


@pytest.fixture
def bandit():
    clock = ManualClock(1e9)
    bandit = open_bandit(
        MemoryStore(clock),
        name="b",
        actions=["A", "B"],
        context={"age": float, "device": ["phone", "desk"]},
        reward_wait=60,
        clock=clock,
        background=False,
        archive_after=1000,
        quarantine=100,
        seed=1,
    )
    bandit.test_clock = clock
    return bandit


def decided(bandit, count: int = 1, **more):
    context = {"age": 3.0, "device": "desk"}
    return bandit.decide_many([{"context": context, **more}] * count)


def test_a_decision_is_shown_with_context_rewards_and_what_actions_were_believed_to_earn(
    bandit, page_of
):
    first, *_ = early = decided(bandit, 200)
    for one in early:
        bandit.reward(one.id, float(one.action == "A"))
    bandit.test_clock.now += 100
    bandit.refit()
    one = decided(bandit, id="visit-1", unit="ann")[0]
    bandit.test_clock.now += 5
    bandit.reward(one.id, 1.0)
    bandit.reward(one.id, 0.0, key="own")
    bandit.test_clock.now += 100
    bandit.reward(one.id, 1.0, key="too-late")
    page = page_of(bandit)
    found = page("decisions", id="visit-1")["decision"]
    assert found["context"] == {"age": 3.0, "device": "desk"}
    assert (found["action"], found["version"], found["unit"]) == (one.action, 1, "ann")
    given = [(one["key"], one["value"], one["seconds"], one["late"]) for one in found["rewards"]]
    assert given == [
        ("reward", 1.0, 5.0, False),
        ("own", 0.0, 5.0, False),
        ("too-late", 1.0, 105.0, True),
    ]
    assert sum(row["probability"] for row in found["actions"]) == pytest.approx(1)
    believed = {row["action"]: row["believed"] for row in found["actions"]}
    assert believed["A"] == pytest.approx(1, abs=0.2)
    assert believed["B"] == pytest.approx(0, abs=0.2)
    assert [row["action"] for row in found["actions"] if row["taken"]] == [one.action]
    # Before anything was learned no belief is claimed.
    found = page("decisions", id=first.id)["decision"]
    assert all(row["believed"] is None for row in found["actions"])


def test_decisions_of_a_unit_are_listed_newest_first(bandit, page_of):
    decided(bandit, 300)
    first = decided(bandit, unit="ann")[0]
    decided(bandit, 300)
    second = decided(bandit, unit="ann")[0]
    decided(bandit, 40)
    page = page_of(bandit)
    found = page("decisions", unit="ann")["newest"]
    assert [one["id"] for one in found] == [second.id, first.id]
    assert len(page("decisions")["newest"]) == 25
    assert page("decisions", unit="bob")["code"] == "unknown"


def test_an_archived_decision_is_found(bandit, page_of):
    own, made = decided(bandit, id="own")[0], decided(bandit)[0]
    bandit.reward(made.id, 1.0)
    bandit.test_clock.now += 5000
    decided(bandit)
    bandit.refit()
    before = bandit.test_clock.now - 1000
    Compaction(bandit.store, bandit.name, bandit.settings, bandit.ledger(), before).run()
    page = page_of(bandit)
    for one in (own, made):
        found = page("decisions", id=one.id)["decision"]
        assert found["archived"]
        assert found["action"] == one.action
    assert [reward["value"] for reward in found["rewards"]] == [1.0]


def test_an_id_that_is_not_there_is_told(bandit, page_of):
    decided(bandit)
    bandit.reward("later", 1.0)
    page = page_of(bandit)
    for asked, code in {
        "no-such-id": "unknown",
        "two words": "malformed",
        "x" * 200: "malformed",
        "later": "quarantined",
    }.items():
        found = page("decisions", id=asked)
        assert (found["code"], found["decision"]) == (code, None)


BEST = {"phone": "A", "desk": "B"}


def test_winners_of_categories_and_of_bins_of_numbers_are_named(page_of):
    rng = np.random.default_rng(0)
    bandit = open_bandit(
        MemoryStore(),
        actions=["A", "B"],
        context={"device": ["phone", "desk"], "age": float},
        reward_wait=0,
        background=False,
        guard_rails={"minimum": 0.2},
        seed=1,
    )
    for _ in range(3):
        contexts = [{"device": str(rng.choice([*BEST])), "age": rng.normal()} for _ in range(400)]
        made = bandit.decide_many([{"context": one} for one in contexts])
        bandit.reward_many(
            [
                {"id": one.id, "value": float(one.action == BEST[context["device"]])}
                for one, context in zip(made, contexts, strict=True)
            ]
        )
        bandit.refit()
    page = page_of(bandit)
    rows = page("contexts")["field"]["rows"]
    assert {row["value"]: row["winner"] for row in rows} == BEST
    assert all(row["clear"] for row in rows)
    assert sum(row["decisions"] for row in rows) == 1200
    assert page("contexts")["sentences"]
    rows = page("contexts", field="age")["field"]["rows"]
    assert len(rows) == 5
    # Each bin has a fifth of the first 1,000 decisions, give or take 6 standard errors of 200.
    for row in rows:
        assert row["decisions"] == pytest.approx(240, abs=6 * np.sqrt(200 * 0.2 * 0.8))
    assert page.http.get("/bandits/default/contexts?field=nothing").status_code == 404
