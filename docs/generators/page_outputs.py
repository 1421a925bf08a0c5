"""Runs the Python of a page, and writes below each block what it prints.

A block ``text`` that follows a block ``python`` shows its output. Other blocks of Python show none.
``python docs/generators/page_outputs.py docs/tutorials/first-bandit.md`` writes the outputs of a
page again; the tests compare them with what the page says.
"""

import argparse
import contextlib
import io
import re
import sys
import tempfile
import types
from pathlib import Path

BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?P<shown>\n```text\n.*?```\n)?", flags=re.DOTALL)
MODULE = "page"
"""The name of the module in which a page runs; dataclasses look their module up by its name."""


def with_outputs(text: str, folder: Path) -> str:
    """Run the blocks of a page in a folder, from the first to the last, and return the page.

    In the result every output that the page shows is that of this run.
    """
    module = types.ModuleType(MODULE)
    before = sys.modules.get(MODULE)
    sys.modules[MODULE] = module
    sys.path.insert(0, str(folder))
    try:
        with contextlib.chdir(folder):
            return BLOCK.sub(lambda block: _run(block, module), text)
    finally:
        sys.path.remove(str(folder))
        if before is None:
            del sys.modules[MODULE]
        else:
            sys.modules[MODULE] = before


def _run(block: "re.Match[str]", module: types.ModuleType) -> str:
    """Run one block, and return it with what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block["code"], "<page>", "exec"), module.__dict__)
    code = f"```python\n{block['code']}```\n"
    if block["shown"] is None:
        return code
    lines = "\n".join(line.rstrip() for line in printed.getvalue().splitlines())
    return f"{code}\n```text\n{lines}\n```\n"


def main() -> None:
    """Write the outputs of the pages that are named."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("page", nargs="+", type=Path)
    for page in parser.parse_args().page:
        with tempfile.TemporaryDirectory() as folder:
            text = with_outputs(page.read_text(encoding="utf-8"), Path(folder))
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
