"""In CI nothing is skipped unseen: what the tests' own configuration makes of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FILES = {
    "test_some.py": """
import pytest

def test_something_is_missing():
    pytest.skip("there is no PostgreSQL server here")

@pytest.mark.skipif(True, reason="the page needs curl")
def test_a_program_is_missing():
    pass

@pytest.mark.xfail(reason="known")
def test_known_to_fail():
    assert False
""",
    "test_other.py": 'import pytest\n\npytest.importorskip("no_such_package")\n',
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strict", "status", "summary"),
    [("", 0, "3 skipped, 1 xfailed"), ("1", 1, "1 failed, 1 xfailed, 2 errors")],
    ids=["skipped", "strict"],
)
def test_a_test_that_would_be_skipped_fails_in_ci(strict, status, summary, tmp_path):
    for name in ("conftest.py", "slow.txt"):
        shutil.copy(Path(__file__).parents[1] / name, tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "--continue-on-collection-errors",
        ],
        cwd=tmp_path,
        env={**os.environ, "SUBMAX_TEST_STRICT": strict, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert summary in done.stdout, done.stdout
    assert done.returncode == status
    if strict:
        assert "nothing may be missing here" in done.stdout
        assert "there is no PostgreSQL server here" in done.stdout
