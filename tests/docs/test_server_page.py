"""The page of the server is followed, block by block, in the order in which a person reads it."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import submax
from submax.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "server.md").read_text(encoding="utf-8")
INLINE = set(re.findall(r"`(submax [^`]* (?:homepage\.db|http:|--)[^`]*)`", PAGE))
"""The commands inside of sentences; those without arguments are only named."""
LIFT, DELETE, DEMO = (
    "submax lift http://127.0.0.1:8000",
    "submax delete http://127.0.0.1:8000 homepage",
    "submax demo --for 60s",
)
"""Commands that need a server, or are one: the blocks of the page and other tests run them."""
PROGRAMS = ("curl", "nginx", "openssl")
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}{os.pathsep}/usr/sbin"


def blocks(*languages):
    return re.findall(rf"```({'|'.join(languages)})\n(.*?)```", PAGE, flags=re.DOTALL)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Reader:
    """Somebody with two terminals: one for the server, and one for everything else.

    The server and the proxy have ports of their own. A block with ``submax serve`` stops the server
    before it, and starts the next.
    """

    def __init__(self, folder, wait_until_ready):
        self.folder, self._wait = folder, wait_until_ready
        self.port, self.proxy_port = free_port(), free_port()
        self.server = None
        self.said = []
        shutil.copytree(ROOT / "deploy", folder / "deploy")
        proxy = folder / "deploy" / "nginx.conf"
        proxy.write_text(self.here(proxy.read_text()))
        self._environment = {**os.environ, "PATH": PATH, "SUBMAX_PORT": str(self.port)}

    def here(self, text):
        text = text.replace(":8000", f":{self.port}").replace("8443", str(self.proxy_port))
        return text.replace("curl ", "curl -sS ")

    def follow(self, language, block):
        if language == "python":
            command = [sys.executable, "-c", self.here(block)]
            return self._run(command)
        if re.search(r"^submax serve", block, flags=re.MULTILINE):
            self._serve(block)
            return ""
        if block.startswith("submax keys add"):
            self.stop()
        return self._run(["bash", "-c", f"set -e\n{self.here(block)}"])

    def _run(self, command):
        done = subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command[-1], done.stdout, done.stderr)
        self.said.append(done.stdout)
        return done.stdout

    def _serve(self, block):
        self.stop()
        # The package is installed already.
        script = re.sub(r"^pip install .*\n", "", block)
        script = re.sub(r"^submax serve", "exec submax serve", script, flags=re.MULTILINE)
        self.server = subprocess.Popen(
            ["bash", "-c", script], cwd=self.folder, env=self._environment,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._wait(f"http://127.0.0.1:{self.port}")

    def stop(self):
        if self.server is not None:
            self.server.send_signal(signal.SIGINT)
            assert self.server.wait(30) == 0
            self.server = None

    def close(self):
        if self.server is not None:
            self.server.kill()
            self.server.wait()
        with contextlib.suppress(OSError, ValueError):
            os.kill(int((self.folder / "proxy.pid").read_text()), signal.SIGTERM)


@pytest.fixture
def reader(tmp_path, wait_until_ready):
    reader = Reader(tmp_path, wait_until_ready)
    yield reader
    reader.close()


@pytest.mark.skipif(
    any(shutil.which(one, path=PATH) is None for one in PROGRAMS),
    reason=f"the page needs {', '.join(PROGRAMS)}",
)
@pytest.mark.slow
def test_a_newcomer_follows_the_page(reader, tmp_path):
    printed = [reader.follow(*block) for block in blocks("sh", "python")]
    said = "".join(printed)
    # The trial: a decision, its reward, the log, and both clients.
    assert '"id":"visit-1","status":"accepted","repeated":false' in said
    (row,) = pq.read_table(tmp_path / "log.parquet").to_pylist()
    assert (row["id"], row["reward"], row["status"]) == ("visit-1", 1.0, "pending")
    assert row["action"] in "ABC"
    (reward,) = pq.read_table(tmp_path / "rewards.parquet").to_pylist()
    assert (reward["id"], reward["value"]) == ("visit-1", 1.0)
    assert "accepted\n" in printed
    assert "{'accepted'}\n" in printed
    # In production: the reward through the proxy, the backup, the metrics, the audit.
    assert '"id":"visit-2","status":"accepted","repeated":false' in said
    (backup,) = tmp_path.glob("backup-*.db")
    assert "DAMAGE" not in said
    assert "Lift against the holdout (A)" in said
    assert "There were no alarms." in said
    assert 'submax_requests_total{operation="reward",status="200"}' in said
    assert re.search(r"operator \(\w+\)  add-key", said)
    assert "for browsers" in said
    assert printed[-1] == '{"bandits":[]}'
    assert backup.stat().st_size > 0
    log = [json.loads(line) for line in (tmp_path / "server.log").read_text().splitlines()]
    assert log[0]["event"] == "serving"
    assert not (tmp_path / "proxy.pid").exists()


def test_commands_inside_of_sentences_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    submax.open("homepage.db", actions=["A", "B"], background=False).close()
    assert {LIFT, DELETE, DEMO} <= INLINE
    here = INLINE - {LIFT, DELETE, DEMO}
    assert len(here) > 5
    for command in sorted(here, key=lambda one: ("delete" in one, one)):
        done = CliRunner().invoke(main, command.split()[1:], input="y\n")
        assert done.exit_code == 0, (command, done.output)


def test_every_variable_and_file_that_the_page_names_exists():
    for named in re.findall(r"`deploy/([\w.]+)`", PAGE):
        assert (ROOT / "deploy" / named).exists()
    for target in re.findall(r"\]\((\.\./[^)#]*)", PAGE):
        assert (ROOT / "docs" / "how-to" / target).exists()
