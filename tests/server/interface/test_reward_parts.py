import pytest

from submax.schema.reward_parts import UNKNOWN_NAME

NAMED = {"name": "page", "actions": ["A", "B"], "rewards": {"click": 1, "purchase": 20}}
SLOTS = {"name": "page", "actions": {"title": ["a", "b"], "image": ["x", "y"]}, "rewards": "slots"}


def decided(http, declaration):
    assert http.post("/bandits", json=declaration).status_code == 201
    return http.post("/bandits/page/decide", json={}).json()["id"]


@pytest.mark.parametrize(
    ("declaration", "given"),
    [
        (NAMED, {"value": 1, "name": "click"}),
        (NAMED, {"value": {"click": 0, "purchase": 1}}),
        (NAMED, {"value": 1, "name": "purchase", "key": "order-7"}),
        (SLOTS, {"value": 1, "slot": "title"}),
        (SLOTS, {"value": [0, 1]}),
    ],
)
def test_a_reward_with_a_name_or_a_slot_is_accepted(http, declaration, given):
    visit = decided(http, declaration)
    answer = http.post("/bandits/page/reward", json={"id": visit, **given})
    assert answer.json()["status"] == "accepted", answer.text
    many = http.post("/bandits/page/reward-many", json={"rewards": [{"id": visit, **given}]})
    assert many.json()["receipts"][0]["repeated"]
    shown = http.get("/bandits/page").json()["rewards"]
    assert shown["kind"] == ("named" if declaration is NAMED else "slots")


@pytest.mark.parametrize(
    ("declaration", "given"),
    [
        (NAMED, {"value": 1}),
        (NAMED, {"value": 1, "name": "buy"}),
        (SLOTS, {"value": 1, "slot": "footer"}),
        ({**NAMED, "rewards": "binary"}, {"value": 1, "name": "click"}),
    ],
)
def test_an_undeclared_name_is_answered_with_one_sentence_and_its_code(http, declaration, given):
    visit = decided(http, declaration)
    answer = http.post("/bandits/page/reward", json={"id": visit, **given})
    assert (answer.status_code, answer.json()["code"]) == (400, UNKNOWN_NAME)
    assert http.get("/bandits/page").json()["counts"].get("rewards", 0) == 0
    assert http.post("/bandits/page/decide", json={}).status_code == 200
