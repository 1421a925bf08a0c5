import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest


@pytest.fixture
def bash():
    def run(folder, script):
        """What a script prints, run where ``submax`` is on the path; it must not fail."""
        here = Path(sys.executable).parent
        done = subprocess.run(
            ["bash", "-c", f"set -e\n{script}"],
            cwd=folder,
            env={**os.environ, "PATH": f"{here}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def wait_until_ready():
    def wait(address):
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), urlopen(f"{address}/readyz") as answer:
                if answer.status == 200:
                    return
            time.sleep(0.05)
        pytest.fail("the server does not get ready")

    return wait
