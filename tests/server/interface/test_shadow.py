import pytest

ARMS = {"name": "arms", "actions": ["A", "B"], "reward_wait": 0.05, "refit_rows": 1}
SHADOW = "/bandits/arms/shadow"


@pytest.fixture
def arms(http):
    assert http.post("/bandits", json=ARMS).status_code == 201
    return http


def decided(http):
    visit = http.post("/bandits/arms/decide", json={}).json()["id"]
    http.post("/bandits/arms/reward", json={"id": visit, "value": 1})


def test_a_shadow_is_set_compared_promoted_and_taken_back(arms, eventually):
    assert arms.get(SHADOW).json()["state"] == "none"
    answer = arms.post(SHADOW, json={"policy": "rcp-submax"})
    assert (answer.status_code, answer.json()["policy"]) == (200, "rcp-submax")

    def has_version():
        decided(arms)
        return arms.get(SHADOW).json()["version"] > 0

    eventually(has_version)
    promoted = arms.post(f"{SHADOW}/promote")
    assert promoted.status_code == 200, promoted.text
    shown = arms.get("/bandits/arms").json()
    assert shown["policy"] == "rcp-submax"
    assert arms.get(SHADOW).json()["policy"] == "rcp-adaptive"
    assert arms.post(f"{SHADOW}/roll-back").status_code == 200
    assert arms.get("/bandits/arms").json()["policy"] == "rcp-adaptive"
    audited = [one["operation"] for one in arms.get("/audit").json()["changes"]]
    assert audited == ["roll-back-shadow", "promote-shadow", "set-shadow", "create"]
    assert arms.post(SHADOW, json={"policy": None}).json()["state"] == "none"


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        (SHADOW, {"policy": "rcp-submx"}, 400, "invalid-input"),
        (SHADOW, {"policy": {"kind": "my_policy.py:MyPolicy"}}, 400, "invalid-input"),
        (SHADOW, {"policy": {"kind": "thompson", "beta": 1e12}}, 400, "invalid-input"),
        (SHADOW, {}, 400, "invalid-input"),
        (f"{SHADOW}/promote", None, 409, "conflict"),
        (f"{SHADOW}/roll-back", None, 409, "conflict"),
    ],
)
def test_what_is_not_possible_is_one_sentence_with_its_code(arms, path, body, status, code):
    answer = arms.post(path, json=body) if body is not None else arms.post(path)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert arms.get(SHADOW).json()["state"] == "none"
    assert arms.post("/bandits/arms/decide", json={}).status_code == 200
