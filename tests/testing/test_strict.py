"""What the tests' own configuration makes of a test whose requirements are missing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ARGUMENTS = ("-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors")
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
NEEDS = {
    "test_needs.py": """
import pytest

@pytest.mark.needs("postgresql")
def test_with_a_server():
    assert False
"""
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "variable", "status", "said"),
    [
        (FILES, {}, 0, "3 skipped, 1 xfailed"),
        # In CI nothing is skipped unseen.
        (FILES, {"SUBMAX_TEST_STRICT": "1"}, 1, "1 failed, 1 xfailed, 2 errors"),
        (NEEDS, {"SUBMAX_TEST_WITHOUT": "all"}, 0, "skipped: postgresql 1"),
    ],
    ids=["skipped", "strict", "needs"],
)
def test_a_test_that_misses_something(files, variable, status, said, tmp_path):
    for name in ("conftest.py", "slow.txt"):
        shutil.copy(TESTS / name, tmp_path)
    shutil.copytree(TESTS / "support", tmp_path / "support")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    unset = {"SUBMAX_TEST_STRICT": "", "SUBMAX_TEST_WITHOUT": ""}
    done = subprocess.run(
        [sys.executable, *ARGUMENTS],
        cwd=tmp_path,
        env={**os.environ, **unset, **variable, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said in done.stdout, done.stdout
    assert done.returncode == status
