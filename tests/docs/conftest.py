import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from waiting import wait_until

ROOT = Path(__file__).parents[2]
GENERATORS = ROOT / "docs" / "generators"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}{os.pathsep}/usr/sbin"


@pytest.fixture(autouse=True)
def _generators(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.syspath_prepend(GENERATORS)
    before = set(sys.modules)
    yield
    # The generators import each other by short names that others might use.
    for name in set(sys.modules) - before:
        if (GENERATORS / f"{name}.py").exists():
            del sys.modules[name]


class Reader:
    """A user with two terminals: one for the server, and one for everything else.

    The server and the proxy have ports of their own. A block with ``submax serve`` stops the server
    before it, and starts the next. A block of JavaScript is saved under the name in its first line.
    """

    def __init__(self, folder, port, proxy_port):
        self.folder, self.port, self.proxy_port, self.server = folder, port, proxy_port, None
        shutil.copytree(ROOT / "deploy", folder / "deploy")
        proxy = folder / "deploy" / "nginx.conf"
        proxy.write_text(self.here(proxy.read_text()))
        self._environment = {**os.environ, "PATH": PATH, "SUBMAX_PORT": str(port)}

    def here(self, text):
        text = text.replace(":8000", f":{self.port}").replace("8443", str(self.proxy_port))
        return text.replace("curl ", "curl -sS -w '\\n' ")

    def follow(self, language, block):
        """Do what a block says, and return what is printed; nothing may fail."""
        if language == "python":
            return self._run([sys.executable, "-c", self.here(block)])
        if language == "js":
            name = block.splitlines()[0].removeprefix("// ")
            (self.folder / name).write_text(self.here(block))
            return ""
        # The package is installed already.
        block = re.sub(r"^pip install .*\n", "", block)
        if re.search(r"^submax serve", block, flags=re.MULTILINE):
            self._serve(block)
            return ""
        if block.startswith("submax keys add"):
            self.stop()
        return self._run(["bash", "-c", f"set -e\n{self.here(block)}"])

    def _run(self, command):
        done = subprocess.run(
            command, cwd=self.folder, env=self._environment, capture_output=True, text=True,
            timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command[-1], done.stdout, done.stderr)
        return done.stdout

    def _serve(self, block):
        self.stop()
        script = re.sub(r"^submax serve", "exec submax serve", block, flags=re.MULTILINE)
        self.server = subprocess.Popen(
            ["bash", "-c", script], cwd=self.folder, env=self._environment,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

        def is_ready():
            address = f"http://127.0.0.1:{self.port}/readyz"
            with contextlib.suppress(OSError), urlopen(address) as answer:
                return answer.status == 200

        wait_until(is_ready, 120)

    def stop(self):
        if self.server is not None:
            self.server.send_signal(signal.SIGINT)
            assert self.server.wait(300) == 0
            self.server = None


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def reader(tmp_path):
    reader = Reader(tmp_path, free_port(), free_port())
    yield reader
    if reader.server is not None:
        reader.server.kill()
        reader.server.wait()
    with contextlib.suppress(OSError, ValueError):
        os.kill(int((tmp_path / "proxy.pid").read_text()), signal.SIGTERM)
