from submax.live.monitoring.alarms.alarm_log import AlarmLog
from submax.live.monitoring.alarms.alarm_records import Alarm

ARMS = {"name": "arms", "actions": ["A", "B"], "alarms": {"webhook": "https://example.com/hook"}}


def test_alarms_are_listed_measured_and_acknowledged(http, store):
    assert http.post("/bandits", json=ARMS).status_code == 201
    assert http.get("/bandits/arms/alarms").json() == {"alarms": []}
    AlarmLog(store, "arms").raise_alarm(
        Alarm("reward-rate", "the mean reward has fallen", {"before": 0.5, "now": 0.1}), None
    )
    (alarm,) = http.get("/bandits/arms/alarms").json()["alarms"]
    assert (alarm["kind"], alarm["active"], alarm["values"]["now"]) == ("reward-rate", True, 0.1)
    assert http.get("/bandits/arms").json()["alarms"] == {"reward-rate": 1}
    line = 'submax_alarms{bandit="arms",kind="reward-rate"} 1.0'
    assert line in http.get("/metrics").text
    (alarm,) = http.post("/bandits/arms/alarms/acknowledge").json()["alarms"]
    assert not alarm["active"]
    assert http.get("/bandits/arms").json()["alarms"] == {}
    assert http.get("/audit").json()["changes"][0]["operation"] == "acknowledge-alarms"
