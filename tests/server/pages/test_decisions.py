"""Single decisions are found, with the reasons for which they were made."""

import pytest

import submax
from submax.live.archive.compacting.compaction import Compaction
from submax.web.server.pages.detail.decisions import decisions_page

NASTY = "<img src=x onerror=alert(1)>\"'"


@pytest.fixture
def bandit(tmp_path):
    clock = [1e9]
    bandit = submax.open(
        tmp_path / "shop.db",
        name="b",
        actions=["A", NASTY],
        context={"age": float, "device": ["phone", "desk"]},
        reward_wait=60,
        clock=lambda: clock[0],
        background=False,
        archive_after=1000,
        quarantine=100,
        seed=1,
    )
    bandit.now = clock
    yield bandit
    bandit.close()


def decided(bandit, count: int = 1, **more):
    context = {"age": 3.0, "device": "desk"}
    return bandit.decide_many([{"context": context, **more}] * count)


def test_a_decision_is_shown_with_context_rewards_and_what_actions_were_believed_to_earn(bandit):
    for one in decided(bandit, 200):
        bandit.reward(one.id, float(one.action == "A"))
    bandit.now[0] += 100
    bandit.refit()
    one = decided(bandit, id="visit-1", unit="ann")[0]
    bandit.now[0] += 5
    bandit.reward(one.id, 1.0)
    bandit.reward(one.id, 0.0, key="own")
    bandit.now[0] += 100
    bandit.reward(one.id, 1.0, key="too-late")
    found = decisions_page(bandit, "visit-1", "").decision
    assert found.context == {"age": 3.0, "device": "desk"}
    assert (found.action, found.version, found.unit) == (one.action, 1, "ann")
    given = [(reward.key, reward.value, reward.seconds, reward.late) for reward in found.rewards]
    assert given == [
        ("reward", 1.0, 5.0, False),
        ("own", 0.0, 5.0, False),
        ("too-late", 1.0, 105.0, True),
    ]
    assert sum(row.probability for row in found.actions) == pytest.approx(1)
    believed = {row.action: row.believed for row in found.actions}
    assert believed["A"] == pytest.approx(1, abs=0.2)
    assert believed[NASTY] == pytest.approx(0, abs=0.2)
    assert [row.action for row in found.actions if row.taken] == [one.action]
    assert "believed to earn" in found.why[0]


def test_decisions_of_a_unit_are_listed_newest_first(bandit):
    decided(bandit, 300)
    first = decided(bandit, unit="ann")[0]
    decided(bandit, 300)
    second = decided(bandit, unit="ann")[0]
    decided(bandit, 40)
    assert [one.id for one in decisions_page(bandit, "", "ann").newest] == [second.id, first.id]
    assert len(decisions_page(bandit, "", "").newest) == 25
    assert decisions_page(bandit, "", "bob").code == "unknown"


def test_an_archived_decision_is_found(bandit):
    own, made = decided(bandit, id="own")[0], decided(bandit)[0]
    bandit.reward(made.id, 1.0)
    bandit.now[0] += 5000
    decided(bandit)
    bandit.refit()
    before = bandit.now[0] - 1000
    Compaction(bandit.store, bandit.name, bandit.settings, bandit.ledger(), before).run()
    for one in (own, made):
        found = decisions_page(bandit, one.id, "").decision
        assert found.archived
        assert found.action == one.action
    assert [reward.value for reward in found.rewards] == [1.0]


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        ("no-such-id", "unknown", "No decision of this bandit has the id no-such-id"),
        ("two words", "malformed", "without spaces"),
        ("x" * 200, "malformed", "1 to 128"),
    ],
)
def test_an_id_that_is_not_there_is_told(bandit, asked, code, words):
    page = decisions_page(bandit, asked, "")
    assert page.code == code
    assert words in page.problem
    assert page.decision is None


def test_a_reward_without_its_decision_is_told(bandit):
    bandit.reward("later", 1.0)
    assert decisions_page(bandit, "later", "").code == "quarantined"


def test_before_anything_was_learned_no_belief_is_claimed(bandit):
    one = decided(bandit)[0]
    found = decisions_page(bandit, one.id, "").decision
    assert all(row.believed is None for row in found.actions)
    assert "Nothing had been learned yet" in found.why[0]
    assert found.state.startswith("No reward has come")
