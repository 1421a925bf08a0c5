"""The rows of the table under a chart, of which there may be thousands of cells."""

from collections.abc import Sequence
from typing import Protocol

from markupsafe import Markup

from submax.web.dashboard.formats import machine_time, reward


class ChartLine(Protocol):
    """One line of a chart, perhaps with a band."""

    @property
    def values(self) -> Sequence[float | None]: ...
    @property
    def low(self) -> Sequence[float | None] | None: ...
    @property
    def high(self) -> Sequence[float | None] | None: ...


def chart_rows(at: Sequence[float], lines: Sequence[ChartLine], unit: str) -> Markup:
    """A row for each time: the time, and of each line its value and the ends of its band.

    A macro of a template would take ten times as long. There are only numbers, so that nothing has
    to be escaped.
    """
    columns = [
        [_cell(one, unit) for one in column]
        for line in lines
        for column in (line.values, line.low, line.high)
        if column is not None
    ]
    rows = [
        f'<tr><th scope="row" data-value="{time:.10g}">{_time(time)}</th>{"".join(cells)}</tr>'
        for time, *cells in zip(at, *columns, strict=True)
    ]
    return Markup("\n".join(rows))


def _cell(value: float | None, unit: str) -> str:
    exact = "" if value is None else f"{value:.6g}"
    return f'<td data-value="{exact}">{reward(value, unit)}</td>'


def _time(at: float) -> str:
    text = machine_time(at)
    return f'<time datetime="{text}">{text}</time>'
