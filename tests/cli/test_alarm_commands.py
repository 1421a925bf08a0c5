import submax
from submax.live.monitoring.alarms.alarm_records import Alarm


def test_alarms_are_shown_and_acknowledged(tmp_path, run_here):
    path = tmp_path / "page.db"
    with submax.open(path, actions=["A", "B"], background=False) as bandit:
        alarm = Alarm("reward-rate", "the mean reward has fallen", {"now": 0.1})
        bandit._alarm_log.raise_alarm(alarm, None)
    shown = run_here("alarms", "show", path).stdout
    assert shown.startswith("ACTIVE ")
    assert "reward-rate: the mean reward has fallen" in shown
    assert "1 alarms of page" in run_here("alarms", "acknowledge", path, "page").stdout
    assert run_here("alarms", "show", path).stdout.startswith("over ")
    assert "acknowledge-alarms" in run_here("audit", path).stdout


def test_without_alarms_it_says_so(tmp_path, run_here):
    path = tmp_path / "page.db"
    submax.open(path, actions=["A", "B"], background=False).close()
    assert run_here("alarms", "show", path).stdout == "There were no alarms.\n"
