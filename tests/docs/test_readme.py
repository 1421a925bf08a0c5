"""The documents are executed: what they show is what happens."""

import csv
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from submax.cli import main
from submax.recommendation.rule_table import rule_table

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def run(directory: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    # Plugins of pytest that are installed here for other tests take a second to import.
    environment = {
        **os.environ,
        "PYTHONWARNINGS": "error",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    return subprocess.run(
        [sys.executable, *command],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


INDEX = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_first_lines_print_what_the_readme_shows(tmp_path):
    (block,) = blocks(README, "python")
    (shown,) = blocks(README, "text")
    lines = [line for line in block.splitlines() if line]
    assert len([line for line in lines if line != "random.seed(1)"]) == 8
    (tmp_path / "example.py").write_text(block)
    done = run(tmp_path, "example.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown


def test_the_first_page_of_the_site_begins_with_the_same_lines():
    """What they print is compared above; there are no other lines to run."""
    for language in ("python", "text"):
        assert blocks(INDEX, language) == blocks(README, language)


def test_the_first_sentence_is_the_same_everywhere():
    sentence = README.split("\n\n")[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    assert sentence == INDEX.split("\n\n")[1]
    assert sentence == project["description"]
    assert sentence == site["site_description"]
    assert sentence == " ".join(main.help.split("\n\n")[0].split())


def test_the_ratios_of_the_default_are_said_alike():
    """The README, the page about the default, and recommendations have one number for one thing."""
    page = (ROOT / "docs" / "results" / "default.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| (0\.\d+) \| ([01]\.\d+) \|$", README, flags=re.MULTILINE)
    assert len(rows) == 3
    for mean, worst in rows:
        assert f"| {mean} | {worst} |" in page
    evidence = rule_table().evidence["27-problems"].sentence
    assert f"{rows[1][0]}, worst {rows[1][1]}" in evidence
    reason = next(one for one in rule_table().rules if one.name == "arms").reason
    assert rows[1][0] in reason
    with (ROOT / "docs" / "research" / "scores-full.csv").open(encoding="utf-8") as file:
        scores = [row for row in csv.DictReader(file) if row["seed"] == "2024"]
    ratios = np.array([float(row["ratio"]) for row in scores])
    errors = np.array([float(row["ratio_error"]) for row in scores])
    assert len(ratios) == 27
    assert (f"{ratios.mean():.2f}", f"{ratios.max():.2f}") == rows[1]
    ahead, decided = (ratios <= 1).sum(), (1 - ratios > 2 * errors).sum()
    behind, lost = (ratios > 1).sum(), (ratios - 1 > 2 * errors).sum()
    assert f"more regret on {behind} of them, on {lost} by more than two standard errors" in reason
    assert f"{ahead} of 27, {decided} of them by more than two standard errors" in page
    assert f"{ahead} of 27, in {decided} of them by more than two standard errors" in evidence


def test_the_readme_is_short():
    """A stranger decides within a minute."""
    assert len(README.split()) <= 700


def test_the_readme_names_every_extra_for_users():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (line,) = re.findall(r"^Extras: .*", README, flags=re.MULTILINE)
    ours = {"dev", "docs", "bench"}
    assert set(re.findall(r"`(\w+)`", line)) == set(project["optional-dependencies"]) - ours


def test_links_of_the_readme_are_absolute_and_lead_into_the_repository():
    """A package index shows the README without the files beside it."""
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert len(links) > 10
    for link in links:
        place = re.fullmatch(
            r"https://(github\.com/submax/submax/blob|raw\.githubusercontent\.com/submax/submax)/main/(.+)",
            link,
        )
        assert place is not None, link
        assert (ROOT / place[2]).exists(), link


@pytest.mark.slow
def test_own_experiment_with_own_policy(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "how-to" / "experiments.md").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(blocks(page, "toml")[0], encoding="utf-8")
    (tmp_path / "first_arm.py").write_text(blocks(page, "python")[0], encoding="utf-8")
    options = ("--replicas", "3", "--jobs", "1", "--no-figures")
    # The worker, which must find the policy too, is a process of its own.
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["simulate", "mine.toml", *options])
    assert done.exit_code == 0, done.output
    assert "first arm" in (tmp_path / "results" / "mine" / "summary.csv").read_text()


def test_the_readme_has_two_targets_of_make():
    targets = re.findall(r"^make [\w-]+", README, flags=re.MULTILINE)
    assert targets == ["make reproduce", "make test"]


def test_ci_runs_the_same_targets():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    targets = re.findall(r"^(?:nice )?make (\w+)\b", script, flags=re.MULTILINE)
    assert targets == ["lint", "test"]


PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8")):
        if not link.startswith("http"):
            assert (path.parent / link).exists(), link


def test_the_list_of_policies_and_strategies_is_complete():
    from submax.policies import presets
    from submax.strategies import STRATEGIES

    page = (ROOT / "docs" / "reference" / "policies.md").read_text(encoding="utf-8")
    named, strategies = (
        set(re.findall(r"`([a-z0-9.-]+)`", page.split(head)[1].split("\n\n")[0]))
        for head in ("| policies | names |", "| strategy | rule | parameter |")
    )
    assert named == set(presets())
    assert set(STRATEGIES.names()) <= strategies


OWN_CLASSES = "\n".join(
    (ROOT / "docs" / "how-to" / f"own-{name}.md").read_text(encoding="utf-8")
    for name in ("policy", "estimator", "environment")
)


@pytest.mark.slow
def test_classes_of_your_own_and_their_tests_pass(tmp_path):
    """Write every block with a title into the file of this name, and run the tests among them."""
    pattern = r'^```python title="(\w+\.py)"\n(.*?)^```'
    named = dict(re.findall(pattern, OWN_CLASSES, flags=re.DOTALL | re.MULTILINE))
    assert len(named) == OWN_CLASSES.count('```python title="')
    for name, block in named.items():
        (tmp_path / name).write_text(block, encoding="utf-8")
    tests = [name for name in named if name.startswith("test_")]
    assert {f"test_{name}" for name in named if name not in tests} == set(tests)
    assert len(tests) == 5
    done = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout


def test_contributing_is_short_and_leads_to_the_pages():
    assert len(CONTRIBUTING.splitlines()) <= 100
    for name in ("policy", "estimator", "environment"):
        assert f"](docs/how-to/own-{name}.md" in CONTRIBUTING


def test_shapes_on_the_page_are_those_that_an_estimator_gets():
    from submax import Feedback, Problem, Slots
    from submax.estimators import Counting
    from submax.testing.rules.examples import some_contexts, some_feedback

    problem = Problem(Slots((2, 3)), context_width=5)
    sizes = {"R": 4, "n": 7, "D": 5, "S": 2, "L": 2, "M": 6}
    estimator, rng = Counting(), np.random.default_rng(0)
    feedback = some_feedback(problem, 4, 7, seed=0)
    params = estimator.fit(estimator.init(problem, 4, rng), feedback, rng)
    belief = estimator.belief(params, some_contexts(problem, 4, 7, seed=0))
    arrays = {
        **feedback._replace(slot_reward=feedback.action)._asdict(),
        "levels": belief.levels(),
        "level_prior": belief.level_prior(),
        "listed": belief.prob_of_all(),
    }
    page = (ROOT / "docs" / "how-to" / "own-estimator.md").read_text(encoding="utf-8")
    section = page.split("## A file and its test")[1].split("```")[0]
    shapes = dict(re.findall(r"`(\w+) \[([\w, ]+)\]`", section))
    assert set(shapes) == {*Feedback._fields, "levels", "level_prior", "listed"}
    for name, letters in shapes.items():
        assert arrays[name].shape == tuple(sizes[letter] for letter in letters.split(", ")), name


def test_command_reference_is_current():
    path = ROOT / "docs" / "generators" / "cli_page.py"
    specification = importlib.util.spec_from_file_location("cli_page", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.reference(), "run: make docs"


def test_public_names_resolve():
    import submax

    for name in submax.__all__:
        assert getattr(submax, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = submax.nothing
