"""Pages that are filled from the code or from results are current: ``make docs``."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATORS = ROOT / "docs" / "generators"
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
def test_the_reference_is_current():
    reference = import_module("docs.generators.reference")
    texts = {path.name: path.read_text(encoding="utf-8") for path in reference.PAGES}
    assert {name: reference.filled(text) for name, text in texts.items()} == texts
    used = {name for text in texts.values() for name in reference.BLOCK.findall(text)}
    assert used == reference.MADE.keys()


@pytest.mark.parametrize("name", RESULTS)
def test_a_page_of_results_is_current(name):
    page = ROOT / "docs" / "results" / RESULTS[name]
    assert page.read_text(encoding="utf-8") == import_module(name).page()
