"""The demo is started as a person would start it, and ends."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from submax.cli import main

DEMO = [sys.executable, "-u", "-m", "submax", "demo"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_visitors_until_it_is_stopped_and_leaves_nothing(tmp_path, monkeypatch, number):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with subprocess.Popen(
        [*DEMO, "--visitors", "20"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        said = ""
        while "visits" not in said.partition("find out")[2]:
            line = demo.stdout.readline()
            assert line, said
            said += line
        (address,) = re.findall(r"http://127\.0\.0\.1:\d+", said)
        with urlopen(f"{address}/bandits/demo") as answer:
            shown = json.load(answer)
        assert shown["counts"]["decisions"] > 0
        demo.send_signal(number)
        rest, _ = demo.communicate(timeout=60)
        assert demo.returncode == 0, rest
    assert "The demo ends" in rest
    assert "Traceback" not in rest
    assert list(tmp_path.glob("submax-demo-*")) == []
    with pytest.raises(OSError, match=r".*"):
        urlopen(f"{address}/healthz", timeout=5)


@pytest.mark.slow
def test_it_ends_by_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = subprocess.run(
        [*DEMO, "--for", "1s"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"1 s, second taste: \d+ visits, \d+ sold; shown lately: plain", done.stdout)
    assert list(Path(tmp_path).glob("submax-demo-*")) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--for", "soon"], "--for was 'soon'"),
        (["--for", "0s"], "--for must be a finite number above 0"),
        (["--visitors", "0"], "--visitors was 0"),
        (["--visitors", "1000"], "at most 200"),
        (["--visitors", "nan"], "--visitors was nan"),
        (["--seed", "-1"], "--seed must be a whole number"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_started(options, words):
    result = CliRunner().invoke(main, ["demo", *options])
    assert result.exit_code == 2
    assert words in result.stderr
