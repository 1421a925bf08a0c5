"""Features of choices over HTTP."""

import pytest

FEATURES = {
    "A": {"price": 3.0, "genre": "rock"},
    "B": {"price": 2, "genre": "jazz"},
}
SHOP = {"name": "shop", "actions": ["A", "B"], "action_features": FEATURES}
PAGE = {
    "name": "page",
    "actions": {"title": ["A", "B"], "layout": ["wide", "narrow"]},
    "action_features": {"title": FEATURES},
}
ADD = {"verb": "add", "choice": "C", "features": {"price": 1.5, "genre": "folk"}}


def done(response, status=200):
    assert response.status_code == status, response.text
    return response.json()


def refused(response, status=400):
    return done(response, status)["error"]


def test_a_bandit_is_declared_and_shown_with_features(http):
    shown = done(http.post("/bandits", json=SHOP), 201)
    assert shown == done(http.get("/bandits/shop"))
    assert shown["actions"][""][1] == {
        "choice": "B",
        "status": "active",
        "features": {"price": 2.0, "genre": "jazz"},
    }


def test_features_of_slots_stand_under_the_names_of_the_slots(http):
    shown = done(http.post("/bandits", json=PAGE), 201)
    assert shown["actions"]["title"][0]["features"] == FEATURES["A"]
    assert shown["actions"]["layout"][0] == {"choice": "wide", "status": "active"}
    done(http.post("/bandits/page/choices", json={**ADD, "slot": "title"}))


def test_a_choice_that_is_added_brings_its_features(http):
    done(http.post("/bandits", json=SHOP), 201)
    shown = done(http.post("/bandits/shop/choices", json=ADD))
    assert shown["actions"][""][2]["features"] == ADD["features"]
    done(http.post("/bandits/shop/choices", json={"verb": "pause", "choice": "C"}))
    shown = done(http.get("/bandits/shop"))
    assert shown["actions"][""][2] == {
        "choice": "C",
        "status": "paused",
        "features": ADD["features"],
    }


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        ({"A": {"price": 1.0}, "B": {}}, "'B' has no feature 'price'"),
        ({"A": {"price": 1.0}}, "the choice 'B' is missing in action_features"),
        ({**FEATURES, "Z": FEATURES["A"]}, "unknown choice in action_features: 'Z'"),
        ({"A": {"price": None}, "B": {"price": 1.0}}, "Expected `float | str | object`"),
        ({"A": {"price": {"x": 1}}, "B": {"price": 1.0}}, "'price' of 'A' must be a number"),
        ({"A": {"price": 1e40}, "B": {"price": 1.0}}, "<= 1e+30"),
        ([1], "Expected `object | null`"),
    ],
)
def test_bad_features_are_refused_in_one_sentence(http, features, reason):
    assert reason in refused(http.post("/bandits", json={**SHOP, "action_features": features}))
    assert done(http.get("/bandits"))["bandits"] == []


@pytest.mark.parametrize(
    ("features", "reason"),
    [
        ({}, "'C' has no feature 'price', and 'A' has"),
        ({"price": 1.0, "genre": 7}, "is the number 7, and that of 'A' is the text 'rock'"),
        ({"price": "NaN", "genre": "rock"}, "is the text 'NaN', and that of 'A' is the number 3"),
        ({"price": 1.0, "genre": "rock", "age": 1}, "'A' has no feature 'age', and 'C' has"),
    ],
)
def test_a_choice_with_other_features_is_not_added(http, features, reason):
    done(http.post("/bandits", json=SHOP), 201)
    answer = http.post("/bandits/shop/choices", json={**ADD, "features": features})
    assert reason in refused(answer)
    assert len(done(http.get("/bandits/shop"))["actions"][""]) == 2


def test_the_description_knows_the_features(http):
    schemas = done(http.get("/openapi.json"))["components"]["schemas"]
    assert "action_features" in schemas["Create"]["properties"]
    assert "features" in schemas["ChangeChoice"]["properties"]
    assert "features" in schemas["ChoiceDetails"]["properties"]
