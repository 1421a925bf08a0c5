"""Pages that are filled from the code or from results are current: ``make docs``."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import submax
from submax.bandit.durable import DurableBandit
from submax.environments import ENVIRONMENTS
from submax.estimators import ESTIMATORS
from submax.policies import POLICIES
from submax.simulation import DELAYS
from submax.strategies import STRATEGIES

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_reference_is_current():
    reference = import_module("docs.generators.reference")
    texts = {path.name: path.read_text(encoding="utf-8") for path in reference.PAGES}
    assert {name: reference.filled(text) for name, text in texts.items()} == texts
    used = {name for text in texts.values() for name in reference.BLOCK.findall(text)}
    assert used == reference.MADE.keys()


@pytest.mark.slow
def test_the_pages_of_results_are_current():
    """Every block is recomputed from the published files."""
    results = import_module("results")
    texts = {page: page.read_text(encoding="utf-8") for page in results.pages()}
    assert {page: results.with_blocks(text) for page, text in texts.items()} == texts
    used = {name.split()[0] for text in texts.values() for name in results.BLOCK.findall(text)}
    assert used == results.BLOCKS.keys()


def test_the_navigation_has_every_page_once(tmp_path):
    configuration = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))
    import_module("docs.generators.site").write_pages(tmp_path)
    written = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.md"))
    named = re.findall(r"'([^']+\.md)'", str(configuration["project"]["nav"]))
    assert sorted(named) == written


def test_the_pages_on_python_have_every_public_name():
    folder = ROOT / "docs" / "reference" / "python"
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("*.md")]
    shown = [_object(name) for text in texts for name in re.findall(r"^::: (\S+)$", text, re.M)]
    packages = ["submax", "submax.client", "submax.evaluation", "submax.testing"]
    packages.append("submax.simulation.figures")
    public = [_object(f"{one}.{name}") for one in packages for name in import_module(one).__all__]
    for registry in (POLICIES, STRATEGIES, ESTIMATORS, ENVIRONMENTS, DELAYS):
        public += map(registry.find, registry.homes)
    documented = {id(one) for one in shown}
    missing = [one for one in public if hasattr(one, "__qualname__") and id(one) not in documented]
    assert missing == []


def test_the_page_on_bandits_has_what_a_store_adds():
    page = (ROOT / "docs" / "reference" / "python" / "bandit.md").read_text(encoding="utf-8")
    added = {name for name in vars(DurableBandit) if name[0] != "_"} - {*dir(submax.Bandit)}
    documented = {*re.findall(r"^ +- (\w+)$", page, re.M)}
    # A server needs the others.
    inside = (
        r"prepare_|waits_|set_by|note_|step|stop|summarize|follow|revision|published|held|deleted"
    )
    assert {name for name in added if not re.match(inside, name)} == documented


def _object(name):
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)
