"""Checks what stands behind the ``?`` of an address."""

from collections.abc import Collection, Iterable

from submax.core.checks import one_of
from submax.core.errors import InputError

LONGEST_SHOWN = 60
"""Characters of an unknown name that the error repeats; declared names are much shorter."""


def check_query(given: Iterable[str], declared: Collection[str]) -> None:
    """Refuse the first name behind the ``?`` that an operation does not declare.

    If an unknown name was ignored, a misspelled one would be answered as if it had not been given.
    """
    for name in given:
        if name in declared:
            continue
        shown = name[:LONGEST_SHOWN]
        if not declared:
            raise InputError(
                f"unknown query parameter {shown!r}: this operation takes none, so leave it out"
            )
        one_of("query parameter", shown, declared)
