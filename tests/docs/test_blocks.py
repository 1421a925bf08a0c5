"""Every block of Python or shell on a page is run by a test, or stands here with a reason.

The blocks of Python on the first page, in tutorials, how-to and explanation: test_pages.py.
"""

import ast
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
SERVER_PAGES = ("test_server_page.py::test_a_newcomer_follows_the_pages",)
LOGS_GUIDE = (
    "test_logs_guide.py::test_the_evaluation_says_what_the_page_says",
    "test_logs_guide.py::test_from_the_file_to_a_served_policy",
    "test_logs_guide.py::test_tuning_prints_the_best",
)
SHELL_IS_RUN_BY = {
    "how-to/server.md": SERVER_PAGES,
    "how-to/deploy.md": SERVER_PAGES,
    "how-to/monitor.md": SERVER_PAGES,
    "how-to/backup-and-upgrade.md": SERVER_PAGES,
    "how-to/logs.md": LOGS_GUIDE,
    "how-to/best-arm.md": ("test_logs_guide.py::test_the_page_on_the_best_arm_is_followed",),
    "tutorials/from-a-log.md": LOGS_GUIDE[:2],
    "tutorials/behind-http.md": ("test_tutorials.py::test_a_bandit_behind_http",),
    "tutorials/reproduce-the-paper.md": ("test_tutorials.py::test_the_paper_is_reproduced",),
    "tutorials/simulate-and-compare.md": ("test_tutorials.py::test_the_file_of_simulations_runs",),
}
"""Pages whose shell blocks are followed, and the tests that do it."""
RUNNERS = {"follow", "bash", "invoke"}
"""Functions that run a block or a command."""
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
    "results/soak.md": "make soak is a target of its own, of 30 minutes",
}
"""Pages whose shell blocks are only checked: commands, options and targets of make exist."""
AT_THE_ROOT = {
    name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")
}
"""Pages outside of the site, whose blocks test_readme.py runs."""
WITH_SHELL = [name for name, text in PAGES.items() if re.search(r"^```sh\n", text, re.MULTILINE)]


def blocks(name, language):
    text = {**PAGES, **AT_THE_ROOT}[name]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def test_every_page_with_shell_blocks_is_followed_or_has_a_reason():
    assert sorted([*SHELL_IS_RUN_BY, *SHELL_IS_NOT_RUN]) == sorted(WITH_SHELL)


def reached(source, test):
    """The parts of a module that a test uses: its own lines, functions and constants."""
    defined = {}
    for part in ast.parse(source).body:
        if isinstance(part, ast.FunctionDef):
            defined[part.name] = part
        elif isinstance(part, ast.Assign):
            names = [one for target in part.targets for one in ast.walk(target)]
            defined |= {one.id: part for one in names if isinstance(one, ast.Name)}
    found, waiting = {}, [test]
    while waiting:
        name = waiting.pop()
        if name in defined and name not in found:
            found[name] = defined[name]
            waiting += [one.id for one in ast.walk(defined[name]) if isinstance(one, ast.Name)]
    return [part for whole in found.values() for part in ast.walk(whole)]


def runs_page(source, test, page):
    """Whether a test names the page and runs something."""
    parts = reached(source, test)
    texts = {part.value for part in parts if isinstance(part, ast.Constant)}
    calls = {ast.unparse(part.func).split(".")[-1] for part in parts if isinstance(part, ast.Call)}
    stem = Path(page).stem
    return bool(calls & RUNNERS) and bool(texts & {stem, f"{stem}.md"})


@pytest.mark.parametrize("page", SHELL_IS_RUN_BY)
def test_the_named_tests_run_the_page(page):
    for test in SHELL_IS_RUN_BY[page]:
        file, _, name = test.partition("::")
        source = (Path(__file__).parent / file).read_text(encoding="utf-8")
        assert runs_page(source, name, page), test


def test_every_command_of_the_guide_on_logs_is_run_by_one_of_its_tests():
    source = (Path(__file__).parent / "test_logs_guide.py").read_text(encoding="utf-8")
    run = set()
    for test in LOGS_GUIDE:
        calls = [one for one in reached(source, test.partition("::")[2]) if is_script(one)]
        run |= {ast.literal_eval(one.args[0]) for one in calls}
    named = re.findall(r"^submax ([a-z]+)", "".join(blocks("how-to/logs.md", "sh")), re.MULTILINE)
    assert run == set(named)


def is_script(part):
    return isinstance(part, ast.Call) and ast.unparse(part.func) == "script"


@pytest.mark.parametrize(
    ("source", "runs"),
    [
        ('PAGE = read("logs.md")\ndef test_it(bash):\n    bash(PAGE)', True),
        ('PAGE = read("logs.md")\ndef test_it(bash):\n    bash("ls")', False),
        ('PAGE = read("logs.md")\ndef test_it(bash):\n    assert PAGE', False),
        ('def test_other(bash):\n    bash("logs.md")', False),
        ('def go(bash):\n    bash(read("logs.md"))\ndef test_it(bash):\n    go(bash)', True),
    ],
)
def test_a_test_that_does_not_run_the_page_is_noticed(source, runs):
    assert runs_page(source, "test_it", "how-to/logs.md") == runs


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


@pytest.mark.parametrize("name", [*PAGES, *AT_THE_ROOT])
def test_commands_and_options_on_a_page_exist(name):
    for line in commands({**PAGES, **AT_THE_ROOT}[name]):
        command, rest = command_of(line.split(" #")[0].split()[1:])
        assert command is not None, line
        known = {word for one in command.params for word in (*one.opts, *one.secondary_opts)}
        given = {word.partition("=")[0] for word in rest if word.startswith("--")}
        assert given <= known | {"--help"}, line


@pytest.mark.parametrize("name", [*WITH_SHELL, *AT_THE_ROOT])
def test_targets_of_make_on_a_page_exist(name):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make ([\w-]+)", "".join(blocks(name, "sh")), re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


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
