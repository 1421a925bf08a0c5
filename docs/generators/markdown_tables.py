"""Tables and numbers in Markdown."""

from collections.abc import Iterable, Mapping


def table(head: tuple[str, ...], body: Iterable[tuple[str, ...]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ("---",) * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figure_text(title: str, path: str, command: str) -> str:
    """Return a figure in Markdown, with the command that makes it below it."""
    return f"![{title}]({path})\n\n*Made by `{command}`.*"


def number(value: float, best: float) -> str:
    """Return a number with three or more digits, in bold if it is the best."""
    text = f"{value:.1f}" if value < 100 else f"{value:.0f}"
    return f"**{text}**" if value == best else text


def with_error(row: Mapping[str, str], measure: str, best: float) -> str:
    """Return a mean with its standard error, in bold if it is the best."""
    mean, error = float(row[f"{measure}_mean"]), float(row[f"{measure}_standard_error"])
    return f"{number(mean, best)} ± {error:.1f}"
