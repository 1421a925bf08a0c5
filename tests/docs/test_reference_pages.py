"""Generated pages of the reference are those that the code gives."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATORS = sorted(
    path.stem for path in (ROOT / "docs" / "generators" / "reference").glob("*_page.py")
)


@pytest.mark.slow
@pytest.mark.parametrize("name", GENERATORS)
def test_the_page_is_current(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    generator = importlib.import_module(f"docs.generators.reference.{name}")
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page(), "run: make docs"


def test_every_variable_that_the_code_or_a_help_names_is_on_the_page_of_settings():
    reference = ROOT / "docs" / "reference"
    files = [*(ROOT / "src").rglob("*.py"), reference / "cli.md"]
    named = {
        word
        for file in files
        for word in re.findall(r"\bSUBMAX_[A-Z_]*[A-Z]\b", file.read_text(encoding="utf-8"))
    }
    # The example of a misspelt variable and of one that only the tests read.
    named -= {"SUBMAX_PROT", "SUBMAX_TEST_SEED"}
    assert {"SUBMAX_PORT", "SUBMAX_KEY_FILE", "SUBMAX_DASHBOARD_PORT"} <= named
    settings = (reference / "settings.md").read_text(encoding="utf-8")
    assert named <= set(re.findall(r"SUBMAX_[A-Z_]+", settings))


def test_the_glossary_is_sorted():
    page = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    table = page.split("|---|---|\n")[1].partition("\n\n")[0]
    words = [re.sub(r"[^a-z ]", "", line.split("|")[1].lower()) for line in table.splitlines()]
    assert len(words) > 100
    assert words == sorted(words)
