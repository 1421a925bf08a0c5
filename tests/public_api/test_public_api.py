"""Public names change only with a line in the changelog.

``python tests/public_api/record.py`` writes the names again. What differs from the last release
must be named in the newest sections of CHANGELOG.md, those above the section of that release. A new
class or command stands for all of its methods and options.
"""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent


def record():
    specification = importlib.util.spec_from_file_location("record", HERE / "record.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def names_of(text: str) -> dict[str, str]:
    """The lines by the name of the thing: what stands before the parameters."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {line.partition("(")[0]: line for line in lines}


def changed_names(before: str, now: str) -> list[str]:
    """The names that were added, removed or changed, without those that their parent stands for."""
    old, new = names_of(before), names_of(now)
    changed = {name for name in old | new if old.get(name) != new.get(name)}
    whole = {name for name in changed if (name in old) != (name in new)}
    beginnings = tuple(f"{name}{sign}" for name in whole for sign in (" ", "."))
    return sorted(name for name in changed if not name.startswith(beginnings))


def words_of(name: str) -> list[str]:
    """What one item of the changelog must name: an option and its command, a class and its method.

    A path stands for itself, and so do a class, a function and a command.
    """
    if name.startswith("$ "):
        command, _, option = name.removeprefix("$ submax ").partition(" -")
        return [command, f"-{option.partition(',')[0]}"] if option else [command]
    if "/" in name:
        return [name.split(" ")[-1]]
    *_, owner, last = name.split(".")
    return [owner, last] if owner[0].isupper() else [last]


def kind_of(word: str) -> str:
    """The name under which files and commands know a class: relative-ucb for RelativeUCB."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", word).lower()


def items_of(text: str) -> list[str]:
    """The code in each item of the changelog: what stands in backticks."""
    items = re.split(r"^- ", text, flags=re.MULTILINE)
    return ["\n".join(re.findall(r"`([^`]+)`", item)) for item in items]


def has_word(code: str, word: str) -> bool:
    words = f"{re.escape(word)}|{re.escape(kind_of(word))}"
    return re.search(rf"(?<![\w-])(?:{words})(?![\w-])", code) is not None


def names_it(text: str, name: str) -> bool:
    words = words_of(name)
    return any(all(has_word(code, word) for word in words) for code in items_of(text))


def newest_sections(changelog: str, released: str) -> str:
    """The text above the section of the released version; all of it if there is no such section."""
    heading = re.search(rf"^## \[{re.escape(released)}\]", changelog, flags=re.MULTILINE)
    return changelog[: heading.start()] if heading else changelog


def missing_from(changelog: str, before: str, now: str) -> list[str]:
    version = re.match(r"# submax (\S+)", before).group(1)
    text = newest_sections(changelog, version)
    return [name for name in changed_names(before, now) if not names_it(text, name)]


@pytest.mark.slow
def test_the_record_is_current():
    module = record()
    now = "".join(f"{line}\n" for line in module.public_lines())
    old, new = names_of(module.CURRENT.read_text(encoding="utf-8")), names_of(now)
    differing = sorted(name for name in old | new if old.get(name) != new.get(name))
    assert not differing, (
        "run: python tests/public_api/record.py, and write a line for CHANGELOG.md"
    )


def test_changes_since_the_release_are_in_the_changelog():
    before = (HERE / "released.txt").read_text(encoding="utf-8")
    now = (HERE / "current.txt").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert missing_from(changelog, before, now) == [], "name these in the newest section"


BEFORE = """# submax 1.0.0
$ submax serve
$ submax serve --port
submax.Bandit(actions)
submax.Bandit.decide(context=None)
submax.old()
"""
CHANGELOG = """# Changelog
## [Unreleased]
- `Client` and `submax follow`; `Bandit.decide` takes a unit; `old` is gone.
- `submax serve --host`.
## [1.0.0]
- `Shadow`, `--quiet`
"""


def test_a_change_that_the_changelog_names_passes():
    now = """$ submax follow
$ submax follow --every
$ submax serve
$ submax serve --host
$ submax serve --port
submax.Bandit(actions)
submax.Bandit.decide(context=None, *, unit=None)
submax.Client(address)
submax.Client.decide()
"""
    assert changed_names(BEFORE, now) == [
        "$ submax follow",
        "$ submax serve --host",
        "submax.Bandit.decide",
        "submax.Client",
        "submax.old",
    ]
    assert missing_from(CHANGELOG, BEFORE, now) == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("- An old shadow decides.", "submax.Shadow"),
        ("- `Shadow` is gone, and we decide otherwise.", "submax.Bandit.decide"),
        ("- `Bandit` is faster.\n- `Client.decide` is new.", "submax.Bandit.decide"),
        ("- `submax demo --host`", "$ submax serve --host"),
        ("- `shadowed`", "submax.Shadow"),
    ],
)
def test_a_word_somewhere_in_the_changelog_is_not_enough(line, name):
    assert not names_it(f"## [Unreleased]\n{line}\n", name)


def test_a_class_and_its_methods_may_be_named_apart_in_one_item():
    assert names_it("- `Bandit` has `decide`\n  and `reward`.\n", "submax.Bandit.reward")


def test_the_page_on_stability_names_every_part():
    page = (ROOT / "docs" / "reference" / "stability.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| names of `submax`")]
    assert set(re.findall(r"`(\w+)`", row)) == {"submax", *record().PARTS}


def test_every_public_module_of_the_package_is_recorded():
    import submax

    modules = {name for name in submax.__all__ if inspect.ismodule(getattr(submax, name))}
    # These two need packages of others, so that submax does not import them.
    assert modules | {"gymnasium", "sklearn"} == set(record().PARTS)


def test_a_class_may_be_named_by_its_kind():
    assert [kind_of(name) for name in ("RelativeUCB", "EXP3IX", "UCB1")] == [
        "relative-ucb",
        "exp3ix",
        "ucb1",
    ]
    changelog = "## [Unreleased]\n- The policy `relative-ucb`.\n"
    now = f"{BEFORE}submax.policies.RelativeUCB()\n"
    assert missing_from(changelog, BEFORE, now) == []


def test_a_change_that_only_an_old_section_names_fails():
    now = f"{BEFORE}$ submax serve --quiet\nsubmax.Shadow()\nGET /shadows\n"
    assert missing_from(CHANGELOG, BEFORE, now) == [
        "$ submax serve --quiet",
        "GET /shadows",
        "submax.Shadow",
    ]
