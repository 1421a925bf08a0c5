"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ("---",) * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
