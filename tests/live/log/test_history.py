from contextlib import contextmanager
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from refusals import raises_code

from submax.core.errors import StoreError
from submax.evaluation.learning import learn
from submax.evaluation.log import Log
from submax.live.bandits.open import open_bandit
from submax.live.declaring.declare import declare
from submax.live.log import history
from submax.live.log.bandits import settings_stream
from submax.live.log.export import Export
from submax.live.log.records import HISTORY, History
from submax.live.operating.doctor import examined
from submax.policies.thompson import Thompson
from submax.schema.actions import Change
from submax.schema.model import Model, hash_of
from submax.schema.schema import Schema
from submax.schema.trained_policy import TrainedPolicy

ARMS, WAIT = ["A", "B", "C"], 10.0
CONTEXT = {"age": float, "country": ["de", "fr"]}


def log_of(seed=0, rows=100):
    rng = np.random.default_rng(seed)
    action = rng.integers(3, size=rows)
    table = {
        "action": np.array(ARMS)[action],
        "reward": (rng.random(rows) < 0.2 + 0.3 * action) * 1.0,
        "propensity": np.full(rows, 1 / 3),
        "context_age": rng.normal(40, 10, rows),
        "context_country": np.array(["de", "fr"])[rng.integers(2, size=rows)],
    }
    return Log.read(table, actions=ARMS, context=CONTEXT)


@pytest.fixture(scope="module")
def learned():
    return learn(log_of(), "linear-thompson")


@pytest.fixture
def opened(store, clock):
    def opened(**given):
        return open_bandit(
            store, **{"background": False, "clock": clock, "reward_wait": WAIT, **given}
        )

    return opened


def context_of(number):
    return {"age": 20.0 + number, "country": "de" if number % 2 else "fr"}


def fed(bandit, clock, rows=20):
    for number in range(rows):
        bandit.decide(context_of(number), id=f"d{number}")
        bandit.reward(f"d{number}", float(number % 3 == 0))
    clock.now += WAIT
    return bandit


def events_of(store):
    return [(event.kind, event.body) for event in store.read(settings_stream("default"))]


@contextmanager
def refused_without_a_change(store, code="invalid-input"):
    before = store.streams(), events_of(store)
    with raises_code(code):
        yield
    assert (store.streams(), events_of(store)) == before


def test_a_bandit_decides_by_what_was_learned_from_the_start(opened, learned):
    bandit = opened(learned=learned)
    assert bandit.version == 1
    assert bandit.policy == learned.policy
    (first,) = bandit.versions()
    assert (first.rows, first.rows_hash) == (100, learned.rows.hash)
    for number in range(20):
        decision = bandit.decide(context_of(number))
        encoded = bandit.settings.context.encode(bandit.settings.context.clean(context_of(number)))
        said = learned.probabilities(encoded[None].astype(np.float32))[0]
        assert decision.propensity == pytest.approx(said[ARMS.index(decision.action)], abs=1e-6)
        assert decision.version == 1


def test_a_bandit_starts_from_a_file(tmp_path, learned):
    learned.write(tmp_path / "policy.safetensors")
    place = tmp_path / "page.db"
    with open_bandit(place, learned=tmp_path / "policy.safetensors", background=False) as bandit:
        assert (bandit.name, bandit.version) == ("page", 1)
    with open_bandit(place, background=False) as bandit:
        assert bandit.version == 1


def test_later_versions_learn_from_the_log_and_the_bandits_own_rows(
    opened, learned, clock, monkeypatch
):
    monkeypatch.setattr(history, "SEGMENT", 30)
    bandit = fed(opened(learned=learned), clock)
    fitted = bandit.refit().fitted
    assert (fitted.version, fitted.rows, bandit.version) == (2, 120, 2)
    own = bandit.ledger().rows.columns()
    assert fitted.rows_hash == bandit.ledger().rows.hash
    parts = [*(learned.rows.rows(slice(first, first + 30)) for first in range(0, 100, 30)), own]
    schema = Schema(menu=bandit.menu, context=bandit.settings.context)
    seed, ahead = bandit.settings.seed, fitted.ahead
    expected = Model.fitted(schema, learned.policy, parts, seed, ahead)
    assert fitted.model == hash_of(expected.to_bytes())
    assert not bandit.refit()


def test_rows_that_were_not_kept_are_not_learned_from_again(opened, clock, monkeypatch):
    monkeypatch.setattr(history, "ENOUGH_ROWS", 7)
    bandit = fed(opened(learned=learn(log_of(), "linear-thompson", keep_rows=7)), clock)
    assert bandit.versions()[0].rows == 7
    assert bandit.refit().fitted.rows == 27


def test_an_arm_that_comes_later_is_tried_and_a_retired_one_is_not(opened, learned, clock):
    bandit = opened(learned=learned)
    bandit.add("D")
    bandit.retire("B")
    fed(bandit, clock, rows=100)
    decisions = [bandit.decide(context_of(number), id=f"d{number}") for number in range(100)]
    assert {one.action for one in decisions} == {"A", "C", "D"}
    fitted = bandit.refit().fitted
    assert (fitted.rows, fitted.active) == (200, ((0, 2, 3),))
    decisions = [bandit.decide(context_of(number)) for number in range(50)]
    assert {one.version for one in decisions} == {2}
    assert "B" not in {one.action for one in decisions}


def test_another_learned_policy_is_refused_and_changes_no_setting(opened, store, learned):
    opened(learned=learned)
    for other in (
        learn(log_of(1), "linear-thompson"),
        learn(log_of(), "linucb"),
        learn(log_of(), "linear-thompson", share=0.5),
    ):
        with refused_without_a_change(store, "conflict"):
            opened(learned=other, refit_rows=8)


@pytest.mark.parametrize(
    "declaration",
    [
        {"actions": ["A", "B", "X"]},
        {"context": {"age": float}},
        {"rewards": "counts", "policy": "linucb"},
    ],
    ids=["actions", "contexts", "rewards"],
)
def test_a_bandit_of_other_actions_contexts_or_rewards_is_refused(
    opened, store, learned, declaration
):
    opened(**{"actions": ARMS, "context": CONTEXT, "policy": "linear-thompson", **declaration})
    with refused_without_a_change(store):
        opened(learned=learned)


@pytest.mark.parametrize("declaration", [{"actions": ["A", "B"]}, {"context": {"age": float}}])
def test_a_declaration_that_does_not_fit_declares_nothing(
    opened, store, tmp_path, learned, declaration
):
    with raises_code("invalid-input"):
        open_bandit(tmp_path / "page.db", learned=learned, **declaration)
    assert list(tmp_path.iterdir()) == []
    with refused_without_a_change(store):
        opened(learned=learned, **declaration)


WITHOUT = {"action": ["A", "B"] * 20, "reward": [1, 0] * 20}
"""A log without propensities."""


def test_a_policy_that_needs_propensities_is_not_started_from_rows_without(opened, store):
    without = learn(Log.read(WITHOUT), "rcp-submax")
    with refused_without_a_change(store):
        opened(learned=without, policy="rcp-optimized")
    opened(learned=without)
    for given in ({}, {"learned": without}):
        with refused_without_a_change(store):
            opened(policy="rcp-optimized", **given)
    assert opened(policy="thompson-1-1").version == 1


def test_propensities_that_are_missing_are_estimated_for_a_policy_that_needs_them(opened, store):
    bandit = opened(learned=learn(Log.read(WITHOUT), "rcp-optimized"))
    assert bandit.version == 1
    assert bandit.failures == {"steps in the background": 0}
    found = list(examined(store, ["default"]))
    assert {one.kind for one in found} == {"ok"}
    assert any("40 rows learned from have estimated propensities" in one.sentence for one in found)


def test_a_policy_that_no_table_describes_cannot_start_a_bandit(opened):
    class Local(Thompson):
        """A class that cannot be imported."""

    with raises_code("invalid-input"):
        opened(learned=learn(log_of(), Local()))


def test_a_file_that_is_no_policy_makes_no_store(tmp_path):
    (tmp_path / "policy.safetensors").write_bytes(b"nothing")
    with raises_code("invalid-input"):
        open_bandit(tmp_path / "page.db", learned=tmp_path / "policy.safetensors")
    assert not (tmp_path / "page.db").exists()


@pytest.mark.parametrize("damage", ["missing", "damaged", "another"])
def test_damaged_rows_are_found_and_decisions_go_on(
    opened, store, learned, clock, monkeypatch, damage
):
    names, put = [], store.put_blob

    def noted(name, data):
        names.append(name)
        put(name, data)

    monkeypatch.setattr(history, "SEGMENT", 30)
    with monkeypatch.context() as patched:
        patched.setattr(store, "put_blob", noted)
        opened(learned=learned).close()
    assert {one.kind for one in examined(store, ["default"])} == {"ok"}
    first, second, *_ = (name for name in names if "/models/" not in name)
    whole, other = store.get_blob(first), store.get_blob(second)
    store.delete_blob(first)
    if damage != "missing":
        store.put_blob(first, whole[: len(whole) // 2] if damage == "damaged" else other)
    bandit = fed(opened(), clock)
    with raises_code("invalid-input"):
        bandit.refit()
    assert bandit.decide(context_of(3)).version == bandit.version == 1
    assert [one.kind for one in examined(store, ["default"])].count("damage") == 1


def test_a_crash_before_the_entries_leaves_pieces_that_do_no_harm(
    opened, store, learned, monkeypatch
):
    declare(store, "default", {**history.declaration_of(learned), "reward_wait": WAIT})

    def crash(stream, entries):
        raise StoreError("the process has ended")

    with monkeypatch.context() as patched:
        patched.setattr(store, "append", crash)
        with raises_code("store-unavailable"):
            opened(learned=learned)
    assert opened().version == 0
    bandit = opened(learned=learned)
    assert bandit.version == 1
    assert [kind for kind, _ in events_of(store)].count(HISTORY) == 1


def test_a_bandit_that_decides_already_takes_what_was_learned_as_its_next_version(
    opened, learned, clock
):
    bandit = fed(opened(**history.declaration_of(learned)), clock)
    assert bandit.refit().version == 1
    again = opened(learned=learned)
    assert again.version == 2
    assert again.refit().fitted.rows == 120


def test_another_policy_from_the_start_is_fitted_to_the_same_rows(opened, learned):
    fitted = opened(learned=learned, policy="linucb").refit().fitted
    assert (fitted.version, fitted.policy, fitted.rows) == (2, "linucb", 100)


def test_slots_and_prices_are_declared_as_the_log_was(opened, clock):
    rng = np.random.default_rng(0)
    table = {
        "action_title": np.array(["A", "B"])[rng.integers(2, size=60)],
        "action_price": rng.uniform(1, 5, 60),
        "reward": rng.integers(2, size=60),
        "propensity": np.full(60, 0.125),
    }
    log = Log.read(table, actions={"title": ["A", "B"], "price": (1, 5)})
    bandit = opened(learned=learn(log, "grid-thompson-1-1"))
    decision = bandit.decide(id="one")
    assert set(decision.action) == {"title", "price"}
    bandit.reward("one", 1.0)
    clock.now += WAIT
    assert bandit.refit().fitted.rows == 61


def learned_with(*changes):
    """Learned from the log of a bandit whose choices were changed."""
    log = log_of()
    menu = log.schema.menu
    for change in changes:
        menu = menu.changed(change)
    schema = msgspec.structs.replace(log.schema, menu=menu)
    return learn(replace(log, schema=schema), "linear-thompson")


def statuses(bandit):
    return [choice.status for choice in bandit.menu.slots[0].choices]


def test_choices_that_were_retired_or_paused_in_the_log_are_so_from_the_start(opened, clock):
    learned = learned_with(Change("retire", "C"), Change("pause", "A"))
    bandit = opened(learned=learned)
    assert statuses(bandit) == ["paused", "active", "retired"]
    assert (bandit.version, bandit.versions()[0].active) == (1, ((1,),))
    assert {bandit.decide(context_of(number)).action for number in range(20)} == {"B"}
    assert not bandit.refit()
    bandit.resume("A")
    fed(bandit, clock)
    fitted = bandit.refit().fitted
    assert (fitted.rows, fitted.active) == (140, ((0, 1),))
    with raises_code("conflict"):
        bandit.resume("C")


def test_opening_again_changes_nothing_even_if_choices_were_changed(opened, store, clock):
    learned = learned_with(Change("pause", "C"))
    bandit = opened(learned=learned)
    bandit.resume("C")
    bandit.add("D")
    bandit.retire("A")
    bandit.retire("B")
    fed(bandit, clock).refit()
    before = events_of(store)
    again = opened(learned=learned)
    assert again.version == 2
    assert statuses(again) == ["retired", "retired", "active", "active"]
    assert events_of(store) == before


def test_a_bandit_that_is_there_retires_what_the_log_had_retired(opened, learned):
    bandit = opened(**{**history.declaration_of(learned), "actions": ["A", "B"]})
    # A choice that was added since the declaration may be one of the log.
    bandit.add("C")
    again = opened(learned=learned_with(Change("retire", "C"), Change("retire", "B")))
    assert again.version == 1
    assert statuses(again) == ["active", "retired", "retired"]


def test_the_last_active_choice_is_not_retired_and_nothing_is_written(opened, store, learned):
    bandit = opened(**history.declaration_of(learned))
    bandit.retire("A")
    bandit.retire("B")
    with refused_without_a_change(store, "conflict"):
        opened(learned=learned_with(Change("pause", "C")), refit_rows=7)


def test_a_history_without_the_newer_fields_is_read(store):
    old = {"rows": 3, "segments": [], "log": "a", "model": "b"}
    read = msgspec.msgpack.decode(msgspec.msgpack.encode(old), type=History)
    assert (read.without_propensity, read.estimated_propensities) == (0, 0)


def test_a_late_start_does_not_roll_the_bandit_back(opened, store, learned, clock, monkeypatch):
    """Another process starts the same bandit, and fits a version, while this one starts it."""
    declare(store, "default", {**history.declaration_of(learned), "reward_wait": WAIT})
    append, before = store.append, []

    def append_late(stream, entries):
        if HISTORY in {entry.kind for entry in entries}:
            monkeypatch.undo()
            bandit = fed(opened(learned=learned), clock)
            assert bandit.refit().version == 2
            before.extend(events_of(store))
        return append(stream, entries)

    monkeypatch.setattr(store, "append", append_late)
    opened(learned=learned)
    assert events_of(store) == before != []
    assert opened().version == 2


@pytest.mark.parametrize("keep_rows", [0, 99])
def test_too_few_rows_that_were_kept_are_refused_and_nothing_is_written(
    opened, store, learned, keep_rows
):
    few = learn(log_of(), "linear-thompson", keep_rows=keep_rows)
    with refused_without_a_change(store):
        opened(learned=few)
    opened(**history.declaration_of(learned))
    with refused_without_a_change(store):
        opened(learned=few, refit_rows=7)


OWN = """
from dataclasses import dataclass
from submax.policies.epsilon_greedy import Random

@dataclass(frozen=True)
class Own(Random):
    pass
"""


def test_a_bandit_starts_from_a_policy_of_a_file_that_was_read_with_trust(opened, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    path = tmp_path / "policy.safetensors"
    learn(Log.read(WITHOUT), {"kind": f"{tmp_path / 'own.py'}:Own"}).write(path)
    with raises_code("invalid-input"):
        opened(learned=path)
    bandit = opened(learned=TrainedPolicy.read(path, trust=True))
    assert bandit.version == 1
    assert type(bandit.policy).__name__ == "Own"


def test_an_export_is_learned_from_and_opened_again(opened, store, clock, tmp_path):
    """A choice that was retired before the export is never decided."""
    first = fed(opened(actions=ARMS, context=CONTEXT, policy="linear-thompson"), clock, rows=60)
    first.refit()
    first.retire("C")
    Export(store, "default").write(tmp_path / "page.parquet")
    log = Log.read(tmp_path / "page.parquet")
    assert len(log) == 60
    assert not np.isnan(log.propensity).any()
    learned = learn(log, "linucb")
    assert learned.probabilities(np.zeros((1, 3), dtype=np.float32))[0, 2] == 0
    again = opened(name="again", learned=learned)
    assert again.versions()[0].rows == 60
    assert statuses(again) == ["active", "active", "retired"]
    decisions = [again.decide(context_of(number)) for number in range(50)]
    assert {one.action for one in decisions} <= {"A", "B"}
    assert {one.version for one in decisions} == {1}
