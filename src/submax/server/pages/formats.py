"""Numbers and times as people read them; every template uses these."""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec

from submax.bandit.decision import LiftReport
from submax.schema.names import Action
from submax.server.keys import time_text

if TYPE_CHECKING:
    # The command lift uses these formats without the libraries of pages.
    from markupsafe import Markup

Shown = SimpleNamespace
"""What a template shows: the names and values of one page, row or sentence."""
NOTHING = "–"
ROUNDING = 1e-12  # smaller numbers are errors of rounding


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits, and commas between thousands.

    >>> number(1234567), number(0.012345), number(2.0), number(None), number(12345.678)
    ('1,234,567', '0.0123', '2', '–', '12,346')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    if abs(value) < ROUNDING:
        return "0"
    if value == int(value) or abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    if abs(value) < 10 ** -(digits + 2):
        return f"{value:.{digits - 1}e}"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    return f"{value:,.{places}f}".rstrip("0").rstrip(".")


def percent(value: float | None, places: int = 1) -> str:
    """A share in percent; what would be rounded to nothing keeps two significant digits.

    >>> percent(0.12345), percent(0.16), percent(1.0), percent(0.00012), percent(None)
    ('12.3 %', '16.0 %', '100 %', '0.012 %', '–')
    """
    if value is None or not math.isfinite(value):
        return NOTHING
    share = 100 * value
    if share in (0.0, 100.0):
        return f"{share:.0f} %"
    return f"{number(share, 2) if abs(share) < 10**-places else f'{share:,.{places}f}'} %"


def reward(value: float | None, unit: str = "number") -> str:
    """A mean reward: in percent, if the unit says so, because rewards are 0 or 1."""
    return percent(value) if unit == "percent" else number(value)


def interval(
    low: float | None, high: float | None, unit: str = "number", *, difference: bool = False
) -> str:
    """The two ends of an interval, with so many places that its width has two digits.

    If the ``unit`` is percent, they are shares. Those of a ``difference`` have a sign.

    >>> interval(0.012, 0.034), interval(0.0918, 0.21, "percent"), interval(None, 1.0)
    ('0.012 to 0.034', '9 to 21 %', '–')
    >>> interval(-0.01, 0.052, "percent", difference=True), interval(0.5, 1.5, difference=True)
    ('-1.0 to +5.2 points', '+0.5 to +1.5')
    """
    if low is None or high is None or not math.isfinite(high - low):
        return NOTHING
    scale, end, sign = 1, "", "+" if difference else ""
    if unit == "percent":
        scale, end = 100, " points" if difference else " %"
    width = scale * (high - low)
    places = max(0, 1 - math.floor(math.log10(width))) if width > 0 else 0
    if places > 6:
        return f"{number(scale * low)} to {number(scale * high)}{end}"
    # Adding 0 makes 0 of −0.
    ends = [round(scale * one, places) + 0.0 for one in (low, high)]
    return " to ".join(f"{one:{sign if one else ''},.{places}f}" for one in ends) + end


def duration(seconds: float | None, digits: int = 3) -> str:
    """A time span in the unit in which it is short.

    >>> duration(0.25), duration(90), duration(7200), duration(3 * 86400), duration(None)
    ('0.25 s', '1.5 min', '2 h', '3 days', '–')
    """
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    for length, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if abs(seconds) >= length:
            return f"{number(seconds / length, digits)} {unit}"
    return f"{number(seconds, digits)} s"


def sentence(text: str) -> str:
    """A message with a capital letter at its beginning and a full stop at its end."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def action_text(action: Action) -> str:
    """An action in one line.

    >>> action_text("A"), action_text({"title": "A", "price": 2.5})
    ('A', 'title A, price 2.5')
    """
    if isinstance(action, str):
        return action
    return ", ".join(
        f"{slot} {part if isinstance(part, str) else number(part)}" for slot, part in action.items()
    )


def field_text(value: Any) -> str:
    """A setting as the text of a field: a name, a number or JSON; nothing for None.

    >>> field_text(None), field_text("random"), field_text(60.0), field_text(["A"])
    ('', 'random', '60', '["A"]')
    """
    if value is None or isinstance(value, str):
        return value or ""
    whole = isinstance(value, float) and value.is_integer()
    return msgspec.json.encode(int(value) if whole else value).decode()


def lift_sentence(report: LiftReport, unit: str) -> str:
    """How much more the bandit earns than the holdout or the control."""
    group = f"{report.against} ({action_text(report.action)})" + " of an A/A test" * report.aa_test
    if not (report.decisions or report.decisions_of_group):
        return f"Gain over the {group}: no decisions counted yet."
    if report.low is None or report.high is None:
        return f"Gain over the {group}: no interval yet."
    gain = interval(report.low, report.high, unit, difference=True)
    means = f"{reward(report.mean, unit)} against {reward(report.mean_of_group, unit)}"
    sentence = f"Gain over the {group}: {gain} (95 % interval, valid at any time), {means}"
    if report.low <= 0 <= report.high:
        sentence += ", so there is no clear difference yet"
    return f"{sentence}."


def chart_rows(at: Sequence[float], lines: Sequence[Any], unit: str) -> "Markup":
    """The rows of the table under a chart: the time, and the values and bands of each line.

    A macro of a template would take ten times as long for thousands of cells. There are only
    numbers, so nothing has to be escaped.
    """
    from markupsafe import Markup

    columns = [one for line in lines for one in (line.values, line.low, line.high) if one]
    rows = []
    for time, *values in zip(at, *columns, strict=True):
        cells = (
            f'<td data-value="{"" if one is None else f"{one:.6g}"}">{reward(one, unit)}</td>'
            for one in values
        )
        shown = f'<time datetime="{time_text(time)}">{time_text(time)}</time>'
        head = f'<th scope="row" data-value="{time:.10g}">{shown}</th>'
        rows.append(f"<tr>{head}{''.join(cells)}</tr>")
    return Markup("\n".join(rows))


FILTERS = {
    "number": number, "percent": percent, "reward": reward, "duration": duration,
    "machine_time": time_text, "sentence": sentence, "field_text": field_text,
}  # fmt: skip
