"""Generated pages of the reference are those that the code gives."""

import importlib
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
