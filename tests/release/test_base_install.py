"""The base of submax is enough for what needs no extra: all other packages are hidden."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# httpx needs those after it.
CLIENT = ("submax", "msgspec", "httpx", "httpcore", "h11", "anyio", "certifi", "idna", "sniffio")
BASE = (*CLIENT, "numpy", "scipy", "click", "rich", "safetensors", "threadpoolctl")
# rich needs the next three on every system, and click needs the last one on Windows.
REQUIRED_BY_BASE = ("markdown_it", "mdurl", "pygments", "colorama")
CLIENT_DECIDES = """
import json, sys, threading
from http.server import BaseHTTPRequestHandler, HTTPServer


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = {"id": given["id"], "action": "A", "propensity": 0.5, "version": 1}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
from submax.client import AsyncClient, Client

with Client(f"http://127.0.0.1:{server.server_port}", "page") as client:
    print(client.decide().action)
assert "numpy" not in sys.modules
"""


@pytest.fixture
def python_with(tmp_path):
    """Runs Python with a few packages, also in the processes that it starts."""
    hidden = (ROOT / "tests" / "release" / "packages_hidden.py").read_text(encoding="utf-8")
    (tmp_path / "sitecustomize.py").write_text(hidden, encoding="utf-8")

    def run(shown, *arguments):
        path = os.pathsep.join([str(tmp_path), str(ROOT / "src")])
        return subprocess.run(
            [sys.executable, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": path, "SHOWN_PACKAGES": ",".join(shown)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            cwd=tmp_path,
        )

    return run


def test_the_first_steps_need_no_extra(python_with):
    done = python_with((*BASE, *REQUIRED_BY_BASE), ROOT / "release" / "first_steps.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok  ") == 5


def test_a_client_needs_httpx_and_msgspec(python_with):
    done = python_with(CLIENT, "-c", CLIENT_DECIDES)
    assert (done.stdout, done.stderr) == ("A\n", "")


def test_import_submax_needs_the_standard_library(python_with):
    done = python_with(("submax",), "-c", "import submax; print('Bandit' in dir(submax))")
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_figures_of_the_paper_are_drawn_without_the_packages_for_logs(python_with, tmp_path):
    """The first command of the tutorial, with what ``submax[plots]`` installs."""
    drawing = (
        "matplotlib",
        "contourpy",
        "cycler",
        "dateutil",
        "fontTools",
        "kiwisolver",
        "mpl_toolkits",
    )
    others = ("packaging", "PIL", "pyparsing", "six", "pyarrow")
    done = python_with(
        (*BASE, *REQUIRED_BY_BASE, *drawing, *others), "-m", "submax", "reproduce", "illustration",
        "--replicas", 2, "--jobs", 1, "--out", "results",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((tmp_path / "results" / "illustration").glob("**/*.png"))
