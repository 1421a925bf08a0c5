"""The documents are executed: what they show is what happens."""

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

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def run(directory: Path, *command: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    return subprocess.run(
        [sys.executable, *command],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
def test_the_first_lines_print_what_the_readme_shows(tmp_path):
    (block,) = blocks(README, "python")
    (shown,) = blocks(README, "text")
    assert len([line for line in block.splitlines() if line]) == 8
    (tmp_path / "example.py").write_text(block)
    done = run(tmp_path, "example.py")
    assert done.returncode == 0, done.stderr
    printed, expected = done.stdout.splitlines(), shown.splitlines()
    assert len(printed) == len(expected)
    assert printed[0] == expected[0]
    assert printed[1].split("version")[0] == expected[1].split("version")[0]
    assert printed[2].split() == expected[2].split()
    assert {line.split()[0] for line in printed[3:]} == {"A", "B", "C"}


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
def test_own_experiment_with_own_policy(tmp_path):
    page = (ROOT / "docs" / "how-to" / "experiments.md").read_text(encoding="utf-8")
    (tmp_path / "mine.toml").write_text(blocks(page, "toml")[0], encoding="utf-8")
    (tmp_path / "first_arm.py").write_text(blocks(page, "python")[0], encoding="utf-8")
    options = ("--replicas", "3", "--jobs", "1", "--no-figures")
    done = run(tmp_path, "-m", "submax", "simulate", "mine.toml", *options)
    assert done.returncode == 0, done.stderr
    assert "first arm" in (tmp_path / "results" / "mine" / "summary.csv").read_text()


def test_commands_of_the_readme_are_understood():
    experiments = (ROOT / "docs" / "how-to" / "experiments.md").read_text(encoding="utf-8")
    commands = [
        line.split("#")[0].split()[1:]
        for block in blocks(README + experiments, "sh")
        for line in block.splitlines()
        if line.startswith("submax ")
    ]
    assert len(commands) >= 5
    for command in commands:
        done = CliRunner().invoke(main, [command[0], "--help"])
        assert done.exit_code == 0
        for word in command:
            if word.startswith("--"):
                assert word in done.stdout


def test_words_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for text in (README, CONTRIBUTING):
        commands = "\n".join(blocks(text, "sh"))
        for word in re.findall(r"^make ([\w-]+)", commands, flags=re.MULTILINE):
            assert re.search(rf"^{word}:", makefile, flags=re.MULTILINE), word
    words = re.findall(r"^make [\w-]+", README, flags=re.MULTILINE)
    assert words == ["make reproduce", "make test"]


def test_ci_runs_the_same_words():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert {"make lint", "make test"} <= set(script.splitlines())


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


@pytest.mark.slow
def test_classes_and_tests_of_contributing_pass(tmp_path):
    """Write every block into the file that its first line names, and run the tests among them."""
    named = {
        block.splitlines()[0].removeprefix("# "): block for block in blocks(CONTRIBUTING, "python")
    }
    for name, block in named.items():
        (tmp_path / name).write_text(block, encoding="utf-8")
    tests = [name for name in named if name.startswith("test_")]
    assert {f"test_{name}" for name in named if name not in tests} == set(tests)
    assert len(tests) == 5
    done = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout


def test_shapes_in_contributing_are_those_that_an_estimator_gets():
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
    section = CONTRIBUTING.split("### An estimator")[1].split("```")[0]
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
