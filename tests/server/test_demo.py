"""The demo is started as a person would start it, and ends; its visitors are as declared."""

import json
import re
import signal
import subprocess
import sys
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import pytest
from waiting import wait_until

from submax.server.demo import ACTIONS, HALF_TIME, QUICK, SLOW, Visitor

DEMO = [sys.executable, "-u", "-m", "submax", "demo"]
PHONE, OTHER = Visitor("a", "phone", "de"), Visitor("b", "desk", "fr")
DRAWS = 2000


@pytest.mark.slow
def test_it_serves_visitors_until_it_is_stopped_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with subprocess.Popen(
        DEMO, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        said = ""
        while not (found := re.findall(r"http://127\.0\.0\.1:\d+", said)):
            line = demo.stdout.readline()
            assert line, said
            said += line

        def decisions():
            with urlopen(f"{found[0]}/bandits/demo", timeout=30) as answer:
                return json.load(answer)["counts"].get("decisions", 0)

        before = wait_until(decisions)
        wait_until(lambda: decisions() > before)
        demo.send_signal(signal.SIGINT)
        rest, _ = demo.communicate(timeout=300)
    assert demo.returncode == 0, rest
    assert "Traceback" not in rest
    assert list(tmp_path.glob("submax-demo-*")) == []
    with pytest.raises(URLError):
        urlopen(f"{found[0]}/healthz", timeout=5)


@pytest.mark.parametrize(
    ("visitor", "tastes"), [(PHONE, ["bold", "playful"]), (OTHER, ["playful", "bold"])]
)
def test_the_best_headline_depends_on_the_visitor_and_changes_at_half_time(visitor, tastes):
    for seconds in (0.0, HALF_TIME - 1, HALF_TIME, 2 * HALF_TIME - 1, 2 * HALF_TIME):
        chances = {action: visitor.chance(action, seconds) for action in ACTIONS}
        assert max(chances, key=chances.get) == tastes[int(seconds // HALF_TIME) % 2]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("seconds", [10.0, HALF_TIME + 10.0])
def test_purchases_come_as_often_and_as_late_as_declared(action, seconds, seed):
    rng = np.random.default_rng(seed)
    found = [PHONE.outcome(action, seconds, rng) for _ in range(DRAWS)]
    chance = PHONE.chance(action, seconds)
    sold = sum(bought for bought, _ in found)
    # Five standard errors; none at all if nothing is ever sold.
    assert abs(sold - DRAWS * chance) <= 5 * np.sqrt(DRAWS * chance * (1 - chance))
    low, high = SLOW if action == "slow" else QUICK
    delays = [delay for _, delay in found]
    assert low <= min(delays) <= max(delays) <= high
