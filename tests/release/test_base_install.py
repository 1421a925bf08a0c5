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
CLIENT_ASKS = """
import sys
from submax import AsyncClient, Client
from submax.core.errors import StoreError

try:
    Client("http://127.0.0.1:9", "page", timeout=1).decide()
except StoreError:
    print("numpy" in sys.modules)
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
    done = python_with(CLIENT, "-c", CLIENT_ASKS)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_import_submax_needs_the_standard_library(python_with):
    done = python_with(("submax",), "-c", "import submax; print('Bandit' in dir(submax))")
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_figures_of_the_paper_are_drawn_without_the_packages_for_logs(python_with, tmp_path):
    """The first command of the tutorial, with what ``submax[plots]`` installs."""
    drawing = "matplotlib contourpy cycler dateutil fontTools kiwisolver mpl_toolkits packaging PIL"
    others = f"{drawing} pyparsing six pyarrow".split()
    done = python_with(
        (*BASE, *REQUIRED_BY_BASE, *others), "-m", "submax", "reproduce", "illustration",
        "--replicas", 2, "--jobs", 1, "--out", "results",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((tmp_path / "results" / "illustration").glob("**/*.png"))
