"""Contexts that grow while a bandit decides, in memory and in a store."""

import pyarrow.parquet as pq
import pytest

import submax
from submax.bandit.durable import open_bandit

COUNTRIES = ["de", "fr", "es"]
DECLARED = {"country": COUNTRIES[:2], "age": float}


@pytest.fixture(params=["memory", "store"])
def bandit(request, tmp_path):
    options = {"actions": ["A", "B"], "context": DECLARED, "reward_wait": 0}
    if request.param == "memory":
        yield submax.Bandit(seed=1, **options)
        return
    with open_bandit(tmp_path / "shop.db", background=False, **options) as opened:
        yield opened


def play(bandit, rounds, **more):
    """In Spain B is good, elsewhere A."""
    for number in range(rounds):
        country = COUNTRIES[number % 3]
        decision = bandit.decide({"country": country, "age": number % 5, **more})
        bandit.reward(decision.id, float((decision.action == "B") == (country == "es")))


def test_an_unknown_category_is_counted_and_learned_from_once_it_is_declared(bandit):
    play(bandit, 90)
    bandit.refit()
    assert bandit.failures == {"unknown categories of 'country'": 30}
    assert any("unknown categories of 'country'" in one for one in bandit.notices())
    bandit.set(context={"country": COUNTRIES})
    # The rows that have been seen are those of Spain from now on.
    play(bandit, 3)
    bandit.refit()
    found = [bandit.decide({"country": country, "age": 1}) for country in COUNTRIES * 20]
    good = [(one.action == "B") == (place % 3 == 2) for place, one in enumerate(found)]
    assert sum(good) > 50
    assert bandit.failures == {"unknown categories of 'country'": 30}


def test_a_field_that_is_added_may_be_missing_and_disturbs_no_decision(bandit):
    play(bandit, 60)
    bandit.refit()
    version = bandit.version
    bandit.set(context={"device": ["phone", "desk"], "visits": "number"})
    assert bandit.settings.context.names == ("country", "age", "device", "visits")
    play(bandit, 30)
    play(bandit, 30, device="phone", visits=3)
    bandit.refit()
    assert bandit.version > version
    assert set(bandit.failures) == {"unknown categories of 'country'"}


def test_open_decisions_of_a_bandit_in_memory_get_the_new_fields(tmp_path):
    bandit = submax.Bandit(["A", "B"], context=DECLARED, seed=1)
    decision = bandit.decide({"country": "es", "age": 3})
    bandit.set(context={"country": COUNTRIES, "device": ["phone"]})
    bandit.reward(decision.id, 1.0)
    assert bandit.refit()
    bandit.save(tmp_path / "bandit.safetensors")
    again = submax.Bandit.load(tmp_path / "bandit.safetensors")
    assert again.settings == bandit.settings
    again.decide({"country": "es", "age": 3})
    assert again.failures == {}


def test_a_store_can_be_opened_again_with_the_wider_context_and_its_export_names_others(tmp_path):
    options = {"actions": ["A", "B"], "reward_wait": 0, "background": False}
    with open_bandit(tmp_path / "shop.db", context=DECLARED, **options) as bandit:
        play(bandit, 30)
    wider = {**DECLARED, "device": ["phone"]}
    with open_bandit(tmp_path / "shop.db", context=wider, **options) as bandit:
        play(bandit, 30, device="phone")
        bandit.refit()
        assert set(bandit.failures) == {"unknown categories of 'country'"}
        bandit.export(tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet").to_pydict()
    assert table["context_device"] == [None] * 30 + ["phone"] * 30
    assert table["context_country"].count("es") == 20
    log = submax.evaluation.Log.read(tmp_path / "log.parquet")
    country, _, device = log.schema.context.fields
    assert (country.values, country.default) == (("de", "fr", "(other)"), "(other)")
    assert (device.values, device.default) == (("phone", "(other)"), "(other)")
