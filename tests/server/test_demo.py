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
from click.testing import CliRunner
from waiting import wait_until

from submax.cli import main
from submax.server.demo import ACTIONS, QUICK, SLOW, DemoWorld, Visitor

DEMO = [sys.executable, "-u", "-m", "submax", "demo"]
WORLD = DemoWorld(half_time=30.0)
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


@pytest.mark.slow
@pytest.mark.soak
def test_it_ends_by_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = subprocess.run(
        [*DEMO, "--for", "1s"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+ visits, \d+ sold", done.stdout)
    assert list(tmp_path.glob("submax-demo-*")) == []


@pytest.mark.parametrize("option", ["--for=0s", "--for=soon"])
def test_wrong_options_are_refused_before_anything_is_started(option):
    result = CliRunner().invoke(main, ["demo", option])
    assert result.exit_code == 2
    assert option.partition("=")[0] in result.stderr


def test_the_best_headline_depends_on_the_visitor_and_changes_at_half_time():
    def best(visitor, seconds):
        return max(ACTIONS, key=lambda action: WORLD.chance(action, visitor, seconds))

    phone, other = Visitor("a", "phone", "de"), Visitor("b", "desk", "fr")
    seconds = (0.0, 29.9, 30.0, 59.9, 60.0)
    assert [best(phone, at) for at in seconds] == ["bold"] * 2 + ["playful"] * 2 + ["bold"]
    assert [best(other, at) for at in seconds] == ["playful"] * 2 + ["bold"] * 2 + ["playful"]


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("seconds", [10.0, 40.0])
def test_purchases_come_as_often_and_as_late_as_declared(action, seconds, seed):
    rng, visitor = np.random.default_rng(seed), Visitor("a", "phone", "de")
    found = [WORLD.outcome(action, visitor, seconds, rng) for _ in range(DRAWS)]
    chance = WORLD.chance(action, visitor, seconds)
    sold = sum(bought for bought, _ in found)
    # Five standard errors; none at all if nothing is ever sold.
    assert abs(sold - DRAWS * chance) <= 5 * np.sqrt(DRAWS * chance * (1 - chance))
    low, high = SLOW if action == "slow" else QUICK
    delays = [delay for _, delay in found]
    assert low <= min(delays) <= max(delays) <= high
