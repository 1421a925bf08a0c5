"""What pages show is what happens: their Python runs, their commands, options and links exist.

A block ``text`` below a block of Python shows what it prints, and must be what it prints. Pages
whose blocks need a server are followed by test_followed.py.
"""

import os
import re
import subprocess
import sys
from pathlib import PurePosixPath

import click
import pytest
import sklearn
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from page_blocks import PAGES, ROOT, texts

from submax.cli import main
from submax.policies import presets
from submax.strategies import STRATEGIES

README = PAGES["README.md"]
FOLLOWED = (
    *("server", "deploy", "monitor", "backup-and-upgrade", "behind-http", "best-arm"),
    *("reproduce-the-paper", "web-frameworks"),
)
"""Pages that test_followed.py follows; the blocks of the last one are parts of the examples."""
FOLDERS = ("docs/tutorials/", "docs/how-to/", "docs/explanation/")
LONG = {
    "ab-tests", "any-classifier", "designs", "drift", "logs", "networks", "question-to-figure",
    "real-actions",
}  # fmt: skip
"""Pages that simulate or train for more than two seconds are run in the soak."""
RUN = [
    pytest.param(page, id=stem, marks=[pytest.mark.soak] if stem in LONG else [])
    for page, text in PAGES.items()
    if page.startswith("docs/") and "\n```python\n" in text and page != "docs/index.md"
    if (stem := PurePosixPath(page).stem) not in FOLLOWED
]
"""Without index.md: it has the lines of the README."""


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_a_page_prints_what_it_shows(page, tmp_path, request):
    from page_outputs import with_outputs

    # Pages that train networks name the number of steps.
    if re.search(r"\bsteps\b", PAGES[page]):
        request.getfixturevalue("short_training")
    # A page may set options of scikit-learn, which must not reach other tests.
    with sklearn.config_context():
        found = with_outputs(PAGES[page], tmp_path)
    assert found == PAGES[page], f"run: python docs/generators/page_outputs.py {page}"


def python(folder, *words):
    """Run Python in a folder; warnings are errors."""
    return subprocess.run(
        [sys.executable, "-W", "error", *words],
        cwd=folder, env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, capture_output=True,
        text=True, timeout=300, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_first_lines_print_what_the_readme_shows(tmp_path):
    done = python(tmp_path, "-c", *texts("README.md", "python"))
    assert (done.stdout, done.stderr) == (*texts("README.md", "text"), "")


@pytest.mark.slow
def test_classes_of_your_own_and_their_tests_pass(tmp_path):
    """Write every block with a title into the file of this name, and run the tests among them."""
    pages = "\n".join(
        PAGES[f"docs/how-to/own-{one}.md"] for one in ("policy", "estimator", "environment")
    )
    pattern = r'^```python title="(\w+\.py)"\n(.*?)^```'
    named = dict(re.findall(pattern, pages, flags=re.DOTALL | re.MULTILINE))
    assert len(named) == pages.count('```python title="')
    for name, block in named.items():
        (tmp_path / name).write_text(block, encoding="utf-8")
    tests = [name for name in named if name.startswith("test_")]
    assert {f"test_{name}" for name in named if name not in tests} == set(tests)
    done = python(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
    assert done.returncode == 0, done.stdout


def commands(text):
    """The commands of a page, in its blocks and inside of its sentences."""
    blocks = "".join(re.findall(r"```(?:sh|console)\n(.*?)```", text, re.DOTALL))
    yield from re.findall(r"^(?:\w+=\S+ )*(?:\.venv/bin/)?(submax [a-z].*)", blocks, re.MULTILINE)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    yield from re.findall(r"(?<!`)`(submax [a-z][^`]*)`(?!`)", prose)


@pytest.mark.parametrize("page", PAGES)
def test_commands_options_targets_and_links_exist(page):
    for line in commands(PAGES[page]):
        command, context = main, click.Context(main)
        words = line.split(" #")[0].split()[1:]
        while isinstance(command, click.Group) and words:
            command, words = command.get_command(context, words[0]), words[1:]
        assert command is not None, line
        known = {word for one in command.params for word in (*one.opts, *one.secondary_opts)}
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= known | {"--help"}, line
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make ([\w-]+)", "".join(texts(page, "sh")), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for link in re.findall(r"\]\(([^)#]+)", PAGES[page]):
        assert link.startswith("http") or ((ROOT / page).parent / link).exists(), link


def test_links_of_the_readme_become_absolute_in_distributions():
    """A package index shows the README without the files beside it."""
    shown = ProjectMetadata(str(ROOT), PluginManager()).core.readme
    written, links = (re.findall(r"\]\(([^)#]+)", text) for text in (README, shown))
    assert len(links) == len(written) > 10
    for link, path in zip(links, written, strict=True):
        assert re.fullmatch(r"https://.+/main/" + re.escape(path), link), link
    assert "![The dashboard: what each arm earns](https://raw." in shown


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_page_is_listed(folder):
    listed = re.findall(rf"\(({folder[5:]}[a-z-]+\.md)\)", PAGES["docs/index.md"])
    pages = [page.removeprefix("docs/") for page in PAGES if page.startswith(folder)]
    assert sorted(set(listed)) == sorted(pages)


def test_the_parts_of_examples_are_in_the_examples():
    page = PAGES["docs/how-to/web-frameworks.md"]
    parts = re.findall(r'```\w+ title="(.*?)"\n(.*?)```', page, flags=re.DOTALL)
    assert len(parts) == 4
    for name, part in parts:
        assert part in (ROOT / name).read_text(encoding="utf-8"), name


def test_the_list_of_policies_and_strategies_is_complete():
    named, strategies = (
        set(
            re.findall(
                r"`([a-z0-9.-]+)`",
                PAGES["docs/reference/policies.md"].split(head)[1].split("\n\n")[0],
            )
        )
        for head in ("| policies | names |", "| strategy | rule | parameter |")
    )
    assert named == set(presets())
    assert set(STRATEGIES.names()) <= strategies
