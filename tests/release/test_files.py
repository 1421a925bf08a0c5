"""The files around the package agree with it: workflows, recipe, citation."""

import re
import tomllib
from pathlib import Path

import yaml

import submax

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
YAML = [
    *WORKFLOWS,
    *FORMS,
    ROOT / ".pre-commit-config.yaml",
    ROOT / "recipe" / "recipe.yaml",
    ROOT / "CITATION.cff",
]


def read(path: Path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_only_the_job_that_publishes_can_prove_who_it_is():
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    allowed = {name for name, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert allowed == {"publish"}
    assert jobs["publish"]["environment"] == "release"
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "password" not in text.replace("no password", "")
    assert "secrets." not in text


def test_the_citation_has_the_version_and_the_paper():
    citation = read(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors", "type"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == submax.__version__
    assert citation["license"] == PROJECT["license"]
    (paper,) = citation["references"]
    assert [author["family-names"] for author in paper["authors"]] == [
        "Xu",
        "Tajaddodianfar",
        "Allison",
    ]


def test_the_first_page_names_the_version():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert f"Version {submax.__version__}," in page


def test_the_recipe_has_the_version_and_the_requirements_of_the_package():
    recipe = read(ROOT / "recipe" / "recipe.yaml")
    assert recipe["context"]["version"] == submax.__version__
    wanted = {f"python {PROJECT['requires-python']}"}
    for requirement in PROJECT["dependencies"]:
        name, limit = re.match(r"([\w-]+)(.*)", requirement).groups()
        wanted.add(f"{name} {limit}")
    assert set(recipe["requirements"]["run"]) == wanted
    (script,) = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(script)]
    assert (ROOT / recipe["about"]["license_file"]).exists()


def test_no_file_names_the_host_of_a_package_index():
    hosts = re.compile(r"\b(pypi\.org|pypi\.io|files\.pythonhosted\.org|anaconda\.org)\b")
    listed = [*YAML, *ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md")]
    assert [path.name for path in listed if hosts.search(path.read_text(encoding="utf-8"))] == []
