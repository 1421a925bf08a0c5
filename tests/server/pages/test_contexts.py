"""The page of contexts names the winner for each value, and where decisions differ."""

import numpy as np
import pytest
from refusals import raises_code

import submax
from submax.web.server.pages.detail.contexts import contexts_page

# One process for these tests, which share a bandit.
pytestmark = pytest.mark.xdist_group("contexts")
BEST = {"phone": "A", "desk": "B"}


@pytest.fixture(scope="module")
def bandit(tmp_path_factory):
    rng = np.random.default_rng(0)
    bandit = submax.open(
        tmp_path_factory.mktemp("contexts") / "shop.db",
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
    yield bandit
    bandit.close()


def test_the_winner_of_each_value_is_named_and_where_decisions_differ(bandit):
    page = contexts_page(bandit, None, None)
    assert {row.value: row.winner for row in page.field.rows} == BEST
    assert all(row.clear for row in page.field.rows)
    assert sum(row.decisions for row in page.field.rows) == 1200
    assert any(one.startswith("If device is phone, ") for one in page.sentences)


def test_numbers_are_in_bins_whose_edges_are_stated(bandit):
    page = contexts_page(bandit, "age", None)
    assert "fifths of the first 1,000 decisions" in page.field.note
    assert next(row.value.split()[0] for row in page.field.rows) == "below"
    assert len(page.field.rows) == 5
    # Each bin has a fifth of the first 1,000 decisions, give or take 6 standard errors of 200.
    for row in page.field.rows:
        assert row.decisions == pytest.approx(240, abs=6 * np.sqrt(200 * 0.2 * 0.8))


def test_an_unknown_field_is_refused(bandit):
    with raises_code("not-found"):
        contexts_page(bandit, "nothing", None)


def test_a_bandit_without_context_says_so():
    page = contexts_page(submax.Bandit(["A", "B"]), None, None)
    assert page.fields == []
    assert page.field is None
