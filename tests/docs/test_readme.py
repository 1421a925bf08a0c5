"""The documents are executed: what they show is what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

from submax.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


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


@pytest.mark.slow
def test_the_first_lines_print_what_the_readme_shows(tmp_path):
    (block,) = blocks(README, "python")
    (shown,) = blocks(README, "text")
    (tmp_path / "example.py").write_text(block)
    done = run(tmp_path, "example.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown


def test_links_of_the_readme_become_absolute_in_distributions():
    """A package index shows the README without the files beside it."""
    metadata = ProjectMetadata(str(ROOT), PluginManager())
    shown = metadata.core.readme
    written = re.findall(r"\]\(([^)#]+)", README)
    links = re.findall(r"\]\(([^)]+)\)", shown)
    assert len(links) == len(written) > 10
    for link, path in zip(links, written, strict=True):
        assert (ROOT / path).exists(), path
        assert re.fullmatch(r"https://.+/main/" + re.escape(path) + r"(#[\w-]+)?", link), link
    assert "![The dashboard: what each arm earns](https://raw." in shown


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
    assert len(tests) == 6
    done = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout


def test_public_names_resolve():
    import submax

    for name in submax.__all__:
        assert getattr(submax, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = submax.nothing
