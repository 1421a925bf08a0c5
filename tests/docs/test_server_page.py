"""The page of the server is followed, command by command."""

import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def serving(tmp_path, port, wait_until_ready):
    """The server of the page, at a port of its own."""
    command = [sys.executable, "-m", "submax", "serve", "homepage.db", "--port", str(port)]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as server:
        server.stderr.readline()
        wait_until_ready(f"http://127.0.0.1:{port}")
        yield tmp_path
        server.terminate()
        assert server.wait(10) == 0


def commands(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page needs curl")
@pytest.mark.slow
def test_a_newcomer_follows_the_page(serving, port, bash):
    def say(block):
        return bash(serving, block.replace("curl ", "curl -sS ").replace(":8000", f":{port}"))

    shell = [block for block in commands("sh") if "curl" in block or "submax export" in block]
    deletion = shell.pop()
    said = "".join(map(say, shell))
    assert '"id":"visit-1","status":"accepted","repeated":false' in said
    (row,) = pq.read_table(serving / "log.parquet").to_pylist()
    assert (row["id"], row["reward"], row["status"]) == ("visit-1", 1.0, "pending")
    assert row["action"] in "ABC"
    (reward,) = pq.read_table(serving / "rewards.parquet").to_pylist()
    assert (reward["id"], reward["value"]) == ("visit-1", 1.0)
    for client, printed in zip(commands("python"), ["accepted\n", "{'accepted'}\n"], strict=True):
        done = subprocess.run(
            [sys.executable, "-c", client.replace(":8000", f":{port}")],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, printed), done.stderr
    assert say(deletion) == '{"bandits":[]}'


def test_the_commands_of_the_page_exist():
    words = {
        line.split()[1] for line in "".join(commands("sh")).splitlines() if line[:7] == "submax "
    }
    assert {"serve", "export", "keys"} <= words
    for word in words:
        command = [sys.executable, "-m", "submax", word, "--help"]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
