"""Commands, options and targets of make that a page names exist, and its Python runs.

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
AT_THE_ROOT = {
    name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md")
}
"""Pages outside of the site, whose blocks test_readme.py runs."""
WITH_SHELL = [name for name, text in PAGES.items() if re.search(r"^```sh\n", text, re.MULTILINE)]


def blocks(name, language):
    text = {**PAGES, **AT_THE_ROOT}[name]
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


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
