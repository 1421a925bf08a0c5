"""Refuses options that would have no effect."""

from submax.core.errors import InputError

ANSWERS_ALONE = "a recommendation from answers alone"
"""The source of a recommendation for which no log and no store is given."""
USED_BY = {
    "bandit": "a store",
    "columns": "the file of a log",
    "declare": "the file of a log",
}
"""What makes use of each option."""


def refuse_unused(source: str, **options: object) -> None:
    """Refuse options that were given, and that ``source`` does not use."""
    for name, value in options.items():
        if value:
            raise InputError(
                f"{name} was given, and {source} does not use {name}: leave {name} out, or give "
                f"{USED_BY[name]}",
                code="unused-option",
            )
