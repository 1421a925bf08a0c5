"""One class per name in the whole package."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "submax"


def test_no_two_classes_have_the_same_name():
    places = defaultdict(list)
    for path in sorted(SOURCES.rglob("*.py")):
        for part in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(part, ast.ClassDef):
                places[part.name].append(path.relative_to(SOURCES).as_posix())
    assert len(places) > 800
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
