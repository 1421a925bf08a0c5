"""The pages are executed: each runs from its first block of Python to its last.

A block ``text`` below a block of Python shows what it prints, and must be what it prints.
"""

import re
from pathlib import Path

import pytest
import sklearn

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLLOWED = {
    "server.md": "test_server_page.py",
    "deploy.md": "test_server_page.py",
    "monitor.md": "test_server_page.py",
    "backup-and-upgrade.md": "test_server_page.py",
    "behind-http.md": "test_tutorials.py",
    "best-arm.md": "test_logs_guide.py",
    "reproduce-the-paper.md": "test_tutorials.py",
    "web-frameworks.md": "its blocks are parts of the examples, below",
}
"""Pages whose blocks need a server, and the tests that follow them."""
TRAINS = re.compile(r"\bsteps\b")
"""What is on every page that trains networks: the number of steps."""
GENERATOR = "docs/generators/page_outputs.py"
PAGES = [
    page
    for folder in ("tutorials", "how-to", "explanation")
    for page in sorted((DOCS / folder).glob("*.md"))
    if page.name not in FOLLOWED and "```python\n" in page.read_text(encoding="utf-8")
]
"""Without index.md: it has the lines of the README, which test_readme.py runs."""
LONG = {
    "ab-tests", "any-classifier", "designs", "drift", "logs", "networks", "question-to-figure",
    "real-actions",
}  # fmt: skip
"""Pages that simulate or train for more than two seconds are run in the soak."""


@pytest.fixture
def with_outputs(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "generators"))
    from page_outputs import with_outputs

    return with_outputs


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.soak] if page.stem in LONG else [])
        for page in PAGES
    ],
)
def test_a_page_prints_what_it_shows(page, tmp_path, with_outputs, request):
    text = page.read_text(encoding="utf-8")
    if TRAINS.search(text):
        request.getfixturevalue("short_training")
    # A page may set options of scikit-learn, which must not reach other tests.
    with sklearn.config_context():
        found = with_outputs(text, tmp_path)
    assert found == text, f"run: python {GENERATOR} {page}"


@pytest.mark.parametrize("folder", ["tutorials", "how-to", "explanation"])
def test_every_page_is_listed(folder):
    listed = re.findall(
        rf"\({folder}/([a-z-]+\.md)\)", (DOCS / "index.md").read_text(encoding="utf-8")
    )
    assert sorted(set(listed)) == sorted(page.name for page in (DOCS / folder).glob("*.md"))


def test_the_parts_of_examples_are_in_the_examples():
    page = (DOCS / "how-to" / "web-frameworks.md").read_text(encoding="utf-8")
    parts = re.findall(r'```\w+ title="(.*?)"\n(.*?)```', page, flags=re.DOTALL)
    assert len(parts) == 4
    for name, part in parts:
        assert part in (ROOT / name).read_text(encoding="utf-8"), name
