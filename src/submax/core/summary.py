"""Summaries of objects for people: sentences and a table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 80
"""Width of the text in characters: the usual width of a terminal."""
LINES = 24
"""Largest number of lines of the text: the usual height of a terminal."""
NARROWEST = 8
"""If a table is too wide, its columns are narrowed, but not below this many characters."""


@dataclass(frozen=True)
class Summary:
    """Sentences, and below them a table, in at most 24 lines of 80 characters, or of a ``width``.

    The first ``texts`` columns hold text; the others hold numbers and are aligned right. Callers
    put the most important rows first, because the last ones are left out; ``more`` is the number of
    rows that the caller has left out already.

    >>> print(Summary(["Two arms."], ["arm", "mean"], [["A", "0.25"], ["B", "0.5"]]))
    Two arms.
      arm  mean
      A    0.25
      B     0.5
    """

    sentences: Sequence[str]
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    texts: int = 1
    more: int = 0
    width: int = WIDTH

    @property
    def room(self) -> int:
        """How many rows of the table fit, given the sentences, the heading and the last line."""
        return max(1, LINES - len(self.sentences) - 2)

    def __str__(self) -> str:
        rows = self.rows
        if len(rows) + bool(self.more) > self.room + 1:
            rows = rows[: self.room]
        lines = [_cut(_printable(sentence), self.width) for sentence in self.sentences]
        if self.columns:
            table = [list(self.columns), *([_printable(cell) for cell in row] for row in rows)]
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            # Names are cut before numbers, which cannot be read without all their digits.
            for columns in (range(self.texts), range(len(widths))):
                while sum(widths) + 2 * len(widths) > self.width:
                    widest = max(columns, key=lambda place: widths[place])
                    if widths[widest] <= NARROWEST:
                        break
                    widths[widest] -= 1
            for row in table:
                cells = [
                    f"  {_cut(cell, width):{'<' if index < self.texts else '>'}{width}}"
                    for index, (cell, width) in enumerate(zip(row, widths, strict=True))
                ]
                lines.append("".join(cells).rstrip()[: self.width])
        if count := self.more + len(self.rows) - len(rows):
            lines.append(f"  … and {count} more")
        return "\n".join(lines)


def number(value: float | None, digits: int = 4) -> str:
    """Format a number with few characters; a missing number is a dash.

    >>> number(0.123456), number(12345.678), number(None)
    ('0.1235', '12,346', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    # 12,346 is easier to read than 1.235e+04.
    whole = 10**digits <= abs(value) < 10**9
    return f"{value:,.0f}" if whole else f"{value:.{digits}g}"


def percentage(value: float | None) -> str:
    """Format a share as a percentage.

    >>> percentage(0.3333)
    '33.3 %'
    """
    return "–" if value is None else f"{100 * value:.1f} %"


def counted(count: int, what: str) -> str:
    """Format a count with its noun in the singular or plural.

    >>> counted(1, "decision"), counted(12345, "decision")
    ('1 decision', '12,345 decisions')
    """
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else "�" for char in text)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return names separated by commas; if there are more than ``most``, how many others there are.

    >>> listed(["a", "b", "c", "d"], 2)
    'a, b and 2 more'
    """
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
