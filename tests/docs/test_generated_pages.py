"""Pages that are generated from the code or from results are current: ``make docs``."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATORS = ROOT / "docs" / "generators"
REFERENCE = sorted(path.stem for path in (GENERATORS / "reference").glob("*_page.py"))
RESULTS = {
    "report_page": "README.md",
    "beyond_page": "beyond.md",
    "bakeoff_page": "bakeoff.md",
    "rivals_page": "rivals.md",
}


@pytest.fixture(autouse=True)
def _generators(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.syspath_prepend(GENERATORS)
    before = set(sys.modules)
    yield
    # The generators import each other by short names that others might use.
    for name in set(sys.modules) - before:
        if (GENERATORS / f"{name}.py").exists():
            del sys.modules[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCE)
def test_a_page_of_the_reference_is_current(name):
    generator = import_module(f"docs.generators.reference.{name}")
    assert generator.PAGE.read_text(encoding="utf-8") == generator.page()


def test_the_page_of_commands_is_current():
    generator = import_module("cli_page")
    assert generator.PAGE.read_text(encoding="utf-8") == generator.reference()


@pytest.mark.parametrize("name", RESULTS)
def test_a_page_of_results_is_current(name):
    page = ROOT / "docs" / "results" / RESULTS[name]
    assert page.read_text(encoding="utf-8") == import_module(name).page()


def test_the_tables_of_tuning_are_current():
    generator = import_module("tuning_page")
    written = generator.PAGE.read_text(encoding="utf-8")
    assert written == generator.with_tables(written)
