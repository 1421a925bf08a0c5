"""What builds, tests and deploys submax is pinned, and every minimum that is declared is tested."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DIGEST = r"sha256:[0-9a-f]{64}"
FOR_DEVELOPERS = {"bench", "docs", "dev", "all"}
"""Extras for working on submax itself."""


def read(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_are_pinned_by_commit_and_say_their_version(file):
    used = re.findall(r"uses: *(.+)", file.read_text(encoding="utf-8"))
    assert used
    for one in used:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one), one


def test_images_are_pinned_by_version_and_digest():
    images = re.findall(r"^FROM (\S+)", read("deploy", "Dockerfile"), re.MULTILINE)
    images += re.findall(r"image: *(\S+)", read("deploy", "compose.yaml"))
    assert len(images) == 4
    for one in images:
        assert re.fullmatch(rf"\w+:\d+\.\d+(\.\d+)?(-\w+)?@{DIGEST}", one), one


def test_packages_that_ci_installs_beside_the_extras_are_pinned():
    installed = re.findall(r"pip install --quiet --no-deps (\S+)", read(".ci", "run"))
    assert installed
    assert all("==" in one for one in installed)


def test_every_minimum_is_declared_and_tested():
    project = tomllib.loads(read("pyproject.toml"))["project"]
    extras = project["optional-dependencies"]
    tested = re.search(r"^OLDEST_EXTRAS = (\S+)$", read("Makefile"), re.MULTILINE)
    assert set(tested[1].split(",")) == set(extras) - FOR_DEVELOPERS
    for one in (*project["dependencies"], *(each for name in tested[1].split(",")
                                            for each in extras[name])):  # fmt: skip
        assert re.match(r"[\w-]+(\[\w+\])?>=\d+(\.\d+)*", one), one
    assert any("make test-oldest" in file.read_text(encoding="utf-8") for file in WORKFLOWS)
