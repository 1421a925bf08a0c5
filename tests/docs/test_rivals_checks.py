"""The page on how rivals were checked names every classic policy, and tests that exist."""

import re
from pathlib import Path

import submax.policies

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "results" / "rivals-checks.md"
FOLDERS = ("classic", "adversarial", "forgetting", "identification", "slates", "linear", "logistic")


def test_every_classic_policy_has_a_row():
    table = PAGE.read_text(encoding="utf-8").split("| policy |")[1].split("\n\n")[0]
    listed = set(re.findall(r"^\| `([a-z0-9-]+)`", table, re.M))
    package = Path(submax.policies.__file__).parent
    kinds = {
        file.stem.replace("_", "-")
        for folder in FOLDERS
        for file in (package / folder).glob("*.py")
        if re.search(r"^    def presets", file.read_text(encoding="utf-8"), re.M)
    }
    assert listed == kinds


def test_every_test_that_is_named_exists():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text(encoding="utf-8")))
    assert named <= {file.stem for file in (ROOT / "tests" / "policies").rglob("test_*.py")}
