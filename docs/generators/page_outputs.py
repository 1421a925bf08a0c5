"""Runs the Python of a page, and writes below each block what it prints.

A block ``text`` that follows a block ``python`` shows its output. A block with a title is saved
under this name, so that later blocks can import it. ``python docs/generators/page_outputs.py
docs/tutorials/first-bandit.md`` writes the outputs of a page again, and its figures; tests compare
the outputs.
"""

import contextlib
import io
import re
import shutil
import sys
import tempfile
import types
from pathlib import Path

BLOCK = re.compile(
    r'```python(?: title="(?P<file>\w+\.py)")?\n(?P<code>.*?)```\n(?P<shown>\n```text\n.*?```\n)?',
    flags=re.DOTALL,
)


def with_outputs(text: str, folder: Path) -> str:
    """Run the blocks of a page in a folder, in order, and return the page with their outputs."""
    # Dataclasses look up their module by its name.
    page = types.ModuleType("page")

    def run(block: re.Match[str]) -> str:
        if block["file"]:
            Path(block["file"]).write_text(block["code"], encoding="utf-8")
            return block[0]
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block["code"], "<page>", "exec"), page.__dict__)
        if not block["shown"]:
            return block[0]
        lines = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
        return f"```python\n{block['code']}```\n\n```text\n{lines}\n```\n"

    sys.modules["page"] = page
    sys.path.insert(0, str(folder))
    try:
        with contextlib.chdir(folder):
            return BLOCK.sub(run, text)
    finally:
        sys.path.remove(str(folder))
        for name in ("page", *re.findall(r'title="(\w+)\.py"', text)):
            sys.modules.pop(name, None)


if __name__ == "__main__":
    for file in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as name:
            text = with_outputs(file.read_text(encoding="utf-8"), Path(name))
            for drawn in Path(name).glob("*.png"):
                if (file.parent / drawn.name).exists():
                    shutil.copy(drawn, file.parent)
        file.write_text(text, encoding="utf-8")
