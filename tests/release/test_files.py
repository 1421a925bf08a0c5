"""The files around the package agree with it, and what they install is pinned."""

import re
import tomllib
from pathlib import Path

import yaml

import submax

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FOR_DEVELOPERS = {"bench", "docs", "dev", "all"}
"""Extras for working on submax itself."""


def read(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def test_only_the_job_that_publishes_can_prove_who_it_is():
    text = read(".github", "workflows", "release.yml")
    jobs = yaml.safe_load(text)["jobs"]
    allowed = {name for name, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert allowed == {"publish"}
    assert jobs["publish"]["environment"] == "release"
    assert "password" not in text.replace("no password", "")
    assert "secrets." not in text


def test_citation_first_page_and_recipe_have_the_version_and_the_requirements():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert (citation["version"], citation["license"]) == (submax.__version__, PROJECT["license"])
    (paper,) = citation["references"]
    names = [author["family-names"] for author in paper["authors"]]
    assert names == ["Xu", "Tajaddodianfar", "Allison"]
    assert f"Version {submax.__version__}," in read("docs", "index.md")
    recipe = yaml.safe_load(read("recipe", "recipe.yaml"))
    assert recipe["context"]["version"] == submax.__version__
    required = [re.match(r"([\w-]+)(.*)", one).groups() for one in PROJECT["dependencies"]]
    wanted = {f"python {PROJECT['requires-python']}", *map(" ".join, required)}
    assert set(recipe["requirements"]["run"]) == wanted
    (script,) = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(script)]
    assert (ROOT / recipe["about"]["license_file"]).exists()


def test_no_file_names_the_host_of_a_package_index():
    hosts = re.compile(r"\b(pypi\.org|pypi\.io|files\.pythonhosted\.org|anaconda\.org)\b")
    listed = [*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.[ym]*"), *ROOT.glob("recipe/*")]
    listed += [ROOT / "CITATION.cff", ROOT / ".pre-commit-config.yaml"]
    assert [path.name for path in listed if hosts.search(path.read_text(encoding="utf-8"))] == []


def test_actions_images_and_packages_of_ci_are_pinned():
    for file in WORKFLOWS:
        used = re.findall(r"uses: *(.+)", file.read_text(encoding="utf-8"))
        assert used
        for one in used:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one), one
    images = re.findall(r"^FROM (\S+)", read("deploy", "Dockerfile"), re.MULTILINE)
    images += re.findall(r"image: *(\S+)", read("deploy", "compose.yaml"))
    assert len(images) == 4
    for one in images:
        assert re.fullmatch(r"\w+:\d+\.\d+(\.\d+)?(-\w+)?@sha256:[0-9a-f]{64}", one), one
    installed = re.findall(r"pip install --quiet --no-deps (\S+)", read(".ci", "run"))
    assert installed
    assert all("==" in one for one in installed)


def test_every_minimum_is_declared_and_tested():
    extras = PROJECT["optional-dependencies"]
    (names,) = re.findall(r"^OLDEST_EXTRAS = (\S+)$", read("Makefile"), re.MULTILINE)
    assert set(names.split(",")) == set(extras) - FOR_DEVELOPERS
    for one in sum((extras[name] for name in names.split(",")), PROJECT["dependencies"]):
        assert re.match(r"[\w-]+(\[\w+\])?>=\d+(\.\d+)*", one), one
    assert any("make test-oldest" in file.read_text(encoding="utf-8") for file in WORKFLOWS)
