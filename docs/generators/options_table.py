"""Write the table of the server's options into docs/how-to/server.md: ``make docs``."""

import re
from pathlib import Path

from submax.server.options import OPTIONS, STORE

PAGE = Path(__file__).parents[1] / "how-to" / "server.md"
HEAD = "| option | variable | default | what it does |\n|---|---|---|---|\n"


def table() -> str:
    """All options with their variables, as a table in Markdown."""
    rows = [("STORE", STORE.variable, "", STORE.help)]
    rows += [(one.word, one.variable, one.default_text, one.help) for one in OPTIONS]
    return HEAD + "".join(
        f"| `{word}` | `{variable}` | {default} | {text} |\n"
        for word, variable, default, text in rows
    )


if __name__ == "__main__":
    old = re.compile(re.escape(HEAD) + r"(\|.*\n)*")
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(old.sub(lambda _: table(), text), encoding="utf-8")
