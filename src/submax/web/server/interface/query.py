"""Refuses query parameters that an operation does not have."""

from collections.abc import Collection, Iterable

from submax.core.checks import one_of
from submax.core.errors import InputError

MAX_REPEATED_CHARACTERS = 60
"""How much of an unknown name the error repeats; declared names are much shorter."""


def check_query(given: Iterable[str], declared: Collection[str]) -> None:
    """Refuse the first query parameter that an operation does not declare.

    If an unknown name was ignored, a misspelled one would be answered as if it had not been given.
    """
    for name in given:
        if name in declared:
            continue
        unknown = name[:MAX_REPEATED_CHARACTERS]
        if not declared:
            raise InputError(
                f"unknown query parameter {unknown!r}: this operation takes none, so leave it out"
            )
        one_of("query parameter", unknown, declared)
