"""One class per name in the whole package."""

import re
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "submax"
CLASS = re.compile(r"^ *class (\w+)[\[(:]", flags=re.MULTILINE)
"""The first line of a class; to parse all modules takes ten times as long."""


def test_no_two_classes_have_the_same_name():
    places = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for name in CLASS.findall(path.read_text(encoding="utf-8")):
            places[name].append(path.relative_to(SOURCES).as_posix())
    assert len(places) > 800
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
