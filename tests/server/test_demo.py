"""The demo is started as a person would start it, and ends."""

import json
import re
import signal
import subprocess
import sys
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from waiting import wait_until

DEMO = [sys.executable, "-u", "-m", "submax", "demo"]


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
