"""The files around the package agree with it: workflows, recipe, citation, templates."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import submax

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
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


def steps_of(path: Path) -> list[dict[str, object]]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_every_file_is_a_table_in_yaml(path):
    assert isinstance(read(path), dict)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_what_github_asks_for(path):
    workflow = read(path)
    # YAML 1.1 reads the key "on" as true.
    assert workflow.get("on", workflow.get(True))
    assert workflow["permissions"] == {"contents": "read"}, "a job asks for more if it needs more"
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            assert "@" in step.get("uses", "@"), "an action has a version"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_jobs_wait_for_jobs_that_exist(path):
    jobs = read(path)["jobs"]
    assert {job["needs"] for job in jobs.values() if "needs" in job} <= set(jobs)


def test_ci_runs_words_of_the_makefile_and_the_script_that_runs_here():
    commands = " ".join(str(step.get("run", "")) for path in WORKFLOWS for step in steps_of(path))
    assert ".ci/run" in commands
    words = re.findall(r"\bmake (?:\w+=\S+ )*([\w-]+)", commands)
    assert "test-fast" in words
    for word in set(words):
        assert re.search(rf"^{word}:", MAKEFILE, flags=re.MULTILINE), word


def test_ci_runs_every_supported_python_on_three_systems():
    matrix = read(ROOT / ".github" / "workflows" / "ci.yml")["jobs"]["systems"]["strategy"][
        "matrix"
    ]
    assert [one.partition("-")[0] for one in matrix["system"]] == ["ubuntu", "macos", "windows"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert PROJECT["requires-python"] == f">={matrix['python'][0]}"


def test_only_the_job_that_publishes_can_prove_who_it_is():
    jobs = read(ROOT / ".github" / "workflows" / "release.yml")["jobs"]
    allowed = {name for name, job in jobs.items() if "id-token" in job.get("permissions", {})}
    assert allowed == {"publish"}
    assert jobs["publish"]["environment"] == "release"
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "password" not in text.replace("no password", "")
    assert "secrets." not in text


@pytest.mark.parametrize("tag", [f"v{submax.__version__}", "v0.0.0"])
def test_the_release_compares_the_tag_with_the_version(tag):
    (check,) = [
        str(step["run"])
        for step in steps_of(ROOT / ".github" / "workflows" / "release.yml")
        if "GITHUB_REF_NAME" in str(step.get("run")) and "_version.py" in str(step.get("run"))
    ]
    done = subprocess.run(
        ["bash", "-c", check], cwd=ROOT, env={"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"}
    )
    assert (done.returncode == 0) == (tag != "v0.0.0")


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_forms_ask_for_something(path):
    form = read(path)
    if path.stem == "config":
        assert all({"name", "url", "about"} == set(link) for link in form["contact_links"])
        return
    assert {"name", "description", "labels", "body"} == set(form)
    identifiers = [field["id"] for field in form["body"]]
    assert len(set(identifiers)) == len(identifiers)
    assert any(field.get("validations", {}).get("required") for field in form["body"])
    assert {field["type"] for field in form["body"]} <= {"textarea", "input"}


def test_hooks_run_tools_of_the_environment_that_make_fills():
    hooks = [
        hook for one in read(ROOT / ".pre-commit-config.yaml")["repos"] for hook in one["hooks"]
    ]
    assert {"ruff-check", "ruff-format", "lint-imports", "public-api"} == {
        one["id"] for one in hooks
    }
    for hook in hooks:
        assert hook["entry"].startswith(".venv/bin/")
        assert hook["language"] == "system"
        re.compile(hook.get("files", ""))
        for word in hook["entry"].split()[1:]:
            if "/" in word:
                assert (ROOT / word).exists()


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


def test_links_of_recommendations_lead_to_the_home_of_the_project():
    from submax.recommendation.published_evidence import HOME

    home = PROJECT["urls"]["Homepage"]
    assert f"{home}/blob/main/" == HOME
    assert read(ROOT / "CITATION.cff")["repository-code"] == PROJECT["urls"]["Homepage"]
    assert read(ROOT / "recipe" / "recipe.yaml")["about"]["homepage"] == PROJECT["urls"]["Homepage"]


def test_no_file_names_the_host_of_a_package_index():
    hosts = re.compile(r"\b(pypi\.org|pypi\.io|files\.pythonhosted\.org|anaconda\.org)\b")
    listed = [*YAML, *ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md")]
    assert [path.name for path in listed if hosts.search(path.read_text(encoding="utf-8"))] == []
