"""The page of contexts names the winner for each value, and where decisions differ."""

import numpy as np
import pytest

from submax.live.bandits.open import open_bandit
from submax.live.store.memory_store import MemoryStore

BEST = {"phone": "A", "desk": "B"}


@pytest.fixture
def page(page_of):
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
    return page_of(bandit)


def test_winners_of_categories_and_of_bins_of_numbers_are_named(page):
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


def test_a_bandit_without_context_has_no_fields(page_of):
    bandit = open_bandit(MemoryStore(), actions=["A", "B"], background=False)
    found = page_of(bandit)("contexts")
    assert (found["fields"], found["field"]) == ([], None)
