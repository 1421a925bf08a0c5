"""Every block of Python or shell on a page is run by a test, or stands here with a reason.

The blocks of Python on the first page, in tutorials, how-to and explanation: test_pages.py.
"""

import re
from pathlib import Path

import click
import pytest

from submax.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {
    path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md"))
}
RUN_ELSEWHERE = ("index.md", "tutorials/", "how-to/", "explanation/")
SHELL_IS_RUN_BY = {
    "how-to/server.md": "test_server_page.py",
    "how-to/deploy.md": "test_server_page.py",
    "how-to/monitor.md": "test_server_page.py",
    "how-to/backup-and-upgrade.md": "test_server_page.py",
    "how-to/logs.md": "test_logs_guide.py",
    "how-to/best-arm.md": "test_logs_guide.py",
    "tutorials/from-a-log.md": "test_logs_guide.py",
    "tutorials/behind-http.md": "test_tutorials.py",
    "tutorials/reproduce-the-paper.md": "test_tutorials.py",
    "tutorials/simulate-and-compare.md": "test_tutorials.py",
}
"""Pages whose shell blocks are followed, and the file of the tests that do it."""
SHELL_IS_NOT_RUN = {
    "index.md": "it installs the package from an index",
    "tutorials/first-bandit.md": "it installs the package from an index",
    "how-to/choose-a-policy.md": "tests/cli runs the command; one block asks questions",
    "how-to/dashboard.md": "tests/server/demo runs the demo, which goes on until Ctrl-C",
    "how-to/experiments.md": "the commands run for hours; test_readme.py runs the file of the page",
    "how-to/log-designs.md": "it installs a package; tests/evaluation/test_open_bandit.py runs it",
    "how-to/question-to-figure.md": "its Python blocks draw and compare the same folder",
    "how-to/sweeps.md": "it needs a cluster; tests/cli/test_dask.py starts a local one",
    "how-to/web-frameworks.md": "it starts a server; the tests of the examples start their own",
    "reference/shell-completion.md": "it writes into the files of the user's shell",
    "research/README.md": "it runs for minutes; test_score.py runs the script on fewer replicas",
    "research/logs.md": "it runs for hours; the page has the numbers",
    "research/rare-rewards.md": "it runs for hours; the page has the numbers",
    "results/rerun.md": "it runs for hours; tests/cli/test_reproduce.py runs small versions",
    "results/soak.md": "make soak is a word of its own, of 30 minutes",
}
"""Pages whose shell blocks are only checked: commands, options and words of make exist."""
WITH_SHELL = [name for name, text in PAGES.items() if re.search(r"^```sh\n", text, re.MULTILINE)]


def blocks(name, language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[name], re.DOTALL | re.MULTILINE)


def test_every_page_with_shell_blocks_is_followed_or_has_a_reason():
    assert sorted([*SHELL_IS_RUN_BY, *SHELL_IS_NOT_RUN]) == sorted(WITH_SHELL)
    for file in SHELL_IS_RUN_BY.values():
        assert (Path(__file__).parent / file).exists()


def command_of(words):
    """The command that a line calls, and the words after its name."""
    command, context = main, click.Context(main)
    while isinstance(command, click.Group) and words:
        command, words = command.get_command(context, words[0]), words[1:]
    return command, words


def commands(text):
    """The commands of a page, in its blocks and inside of its sentences."""
    blocks = "".join(re.findall(r"```(?:sh|console)\n(.*?)```", text, re.DOTALL))
    yield from re.findall(r"^(?:\w+=\S+ )*(?:\.venv/bin/)?(submax [a-z].*)", blocks, re.MULTILINE)
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    yield from re.findall(r"(?<!`)`(submax [a-z][^`]*)`(?!`)", prose)


@pytest.mark.parametrize("name", PAGES)
def test_commands_and_options_on_a_page_exist(name):
    for line in commands(PAGES[name]):
        command, rest = command_of(line.split(" #")[0].split()[1:])
        assert command is not None, line
        known = {word for one in command.params for word in (*one.opts, *one.secondary_opts)}
        given = {word.partition("=")[0] for word in rest if word.startswith("--")}
        assert given <= known | {"--help"}, line


@pytest.mark.parametrize("name", WITH_SHELL)
def test_words_of_make_on_a_page_exist(name):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in re.findall(r"^make ([\w-]+)", "".join(blocks(name, "sh")), re.MULTILINE):
        assert re.search(rf"^{word}:", makefile, re.MULTILINE), word


@pytest.mark.parametrize(
    "name", [one for one in PAGES if not one.startswith(RUN_ELSEWHERE) and blocks(one, "python")]
)
def test_blocks_of_python_on_other_pages_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks(name, "python")), name, "exec"), {"__name__": "page"})


@pytest.mark.parametrize("name", [name for name, text in PAGES.items() if "\n![" in text])
def test_the_command_that_made_a_figure_is_below_it(name):
    for line in re.findall(r"^!\[.*\]\(.*\)\n+(.*)", PAGES[name], re.MULTILINE):
        assert re.search(r"`(?:make|submax|python) [^`]+`", line), line
