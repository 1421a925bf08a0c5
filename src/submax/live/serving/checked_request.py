"""A request for a decision whose arguments were checked."""

from typing import Any, NamedTuple

from submax.schema.menu import ChoiceIndices


class CheckedRequest(NamedTuple):
    """The id of a decision that is to be made, and what it is made from.

    ``values`` are those of the context, in the order of its fields. ``unit`` is the visitor or
    customer for whom it is made, None if the caller named none.
    """

    identifier: str
    values: list[Any]
    eligible: ChoiceIndices
    activate: bool
    unit: str | None = None
