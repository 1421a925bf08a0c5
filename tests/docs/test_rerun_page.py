"""A sceptic finds the command, the date and the machine of every result."""

import re
from pathlib import Path

import pytest

from submax.experiments.specification import load_named

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
PAGE = (RESULTS / "rerun.md").read_text(encoding="utf-8")
PAGES = sorted({*RESULTS.glob("*.md")} - {RESULTS / "rerun.md"})
DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")


@pytest.fixture(autouse=True)
def _generators(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "generators"))


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.splitlines() if line.startswith("| [")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_is_current():
    import rerun_page

    assert rerun_page.with_tables(PAGE) == PAGE, "run: make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_leads_to_its_command_and_date(page):
    assert "](rerun.md" in page.read_text(encoding="utf-8")
    assert any(f"]({page.name}" in row[0] for row in rows())


def test_every_row_has_a_command_a_date_and_a_word_about_the_machine():
    for row in rows():
        assert re.match(r"`(submax|python|make) ", row[1])
        assert any(DATE.fullmatch(cell) for cell in row)
        assert row[-1]


def test_experiments_and_scripts_exist():
    """The options of commands are checked on every page by test_blocks.py."""
    for name in re.findall(r"`submax reproduce ([\w-]+)", PAGE):
        assert load_named(name).name == name
    for path, rest in re.findall(r"`python (\S+)([^`]*)`", PAGE):
        text = (ROOT / path).read_text(encoding="utf-8")
        for option in re.findall(r"--[\w-]+", rest):
            assert option in text, path
