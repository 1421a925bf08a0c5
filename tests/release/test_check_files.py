"""The distributions are built, and their files are what they should be."""

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def checks():
    spec = importlib.util.spec_from_file_location("check_files", ROOT / "release/check_files.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.needs("git")
def test_the_distributions_have_all_files_and_no_others(checks, tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(checks.check_folder(tmp_path, checks.tracked_sources(ROOT))) == []


def test_every_problem_of_a_wheel_is_named(checks, tmp_path):
    path = tmp_path / "submax-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("submax/__pycache__/bandit.pyc", b"")
        wheel.writestr("submax/large.json", bytes(checks.MAX_BYTES + 1))
        wheel.writestr("submax/vendor/chart.min.js", b"")
        wheel.writestr("submax-1.dist-info/LICENSE", b"")
        wheel.writestr("submax-1.dist-info/entry_points.txt", b"")
        requirements = ("numpy>=1.26", "pyarrow>=15", 'matplotlib>=3.8; extra == "plots"')
        lines = "".join(f"Requires-Dist: {one}\n" for one in requirements)
        wheel.writestr("submax-1.dist-info/METADATA", lines)
    found = [problem.split(": ")[0] for problem in checks.check_wheel(path, {"py.typed"})]
    assert found == [
        "submax/py.typed is missing",
        "submax/__pycache__/bandit.pyc should not be distributed",
        f"submax/large.json has {checks.MAX_BYTES + 1} bytes, and at most 1000000 are allowed",
        "submax/vendor/chart.min.js is vendored without its licence, "
        "submax/vendor/chart.LICENSE.txt",
        "the base requires pyarrow>=15",
    ]


def test_a_folder_must_have_one_of_each(checks, tmp_path):
    problems = list(checks.check_folder(tmp_path, set()))
    assert len(problems) == 2
    assert problems[0].endswith("has 0 files *.whl, and one is allowed: build again")
