"""The part of an experiment that ``--only KEY=VALUE`` and ``--all`` select."""

from collections.abc import Iterable, Sequence

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.experiments.running.cells import Cell
from submax.experiments.specification import Specification, policy_name


def select(cells: Sequence[Cell], only: Iterable[str]) -> list[Cell]:
    """The cells that match every key; if a key is given several times, any of its values."""
    wanted: dict[str, list[str]] = {}
    for text in only:
        key, sign, value = text.partition("=")
        if not sign or not value:
            raise InputError(f"--only must be KEY=VALUE, such as arms=100, not {text!r}")
        wanted.setdefault(key, []).append(value)
    chosen = list(cells)
    for key, values in wanted.items():
        one_of("key of --only", key, [*cells[0].labels, "policy"])
        allowed = list(dict.fromkeys(_text(cell, key) for cell in cells))
        normal = [_normal(value) for value in values]
        for value, text in zip(normal, values, strict=True):
            if value not in allowed:
                raise InputError(
                    f"no configuration has {key}={text}: allowed values of {key} are "
                    f"{', '.join(allowed)}"
                )
        chosen = [cell for cell in chosen if _text(cell, key) in normal]
    return chosen


def without_more(
    specification: Specification, cells: Sequence[Cell], only: Iterable[str]
) -> list[Cell]:
    """The cells without those of ``more_policies``, unless ``--only`` names policies."""
    if any(text.startswith("policy=") for text in only):
        return list(cells)
    more = {policy_name(policy) for policy in specification.more_policies}
    return [cell for cell in cells if cell.policy_name not in more]


def _text(cell: Cell, key: str) -> str:
    return _normal(str(cell.policy_name if key == "policy" else cell.labels[key]))


def _normal(text: str) -> str:
    """The text with one spelling for equal numbers: 9 for 9.0, 0.1 for 1e-1."""
    try:
        number = float(text)
    except ValueError:
        return text
    return str(int(number)) if number.is_integer() else str(number)
