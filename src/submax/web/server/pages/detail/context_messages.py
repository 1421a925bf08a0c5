"""What the page of contexts shows."""

import msgspec


class ChoiceShare(msgspec.Struct, frozen=True):
    """How often a choice was decided for, at one value and on average."""

    choice: str
    share: float
    average: float


class ValueRow(msgspec.Struct, frozen=True):
    """One value of a field: a category, a bin of numbers, or all other categories.

    ``mean`` is the mean reward of the decisions that were learned from. ``winner`` is the choice
    with the highest ``rate``, with its 95 % interval for one look; it is ``clear`` if the interval
    of its difference from every other choice lies above 0. ``distance`` says how differently
    decisions are made here: half of the sum of all differences of shares, from 0 to 1. ``most`` is
    the choice whose share differs most.
    """

    value: str
    decisions: int
    share: float | None
    mean: float | None
    winner: str
    rate: float | None
    low: float | None
    high: float | None
    clear: bool
    distance: float
    most: ChoiceShare | None


class FieldDetails(msgspec.Struct, frozen=True):
    """A field with its values; ``note`` says how values were put together."""

    name: str
    note: str
    rows: list[ValueRow]


class ContextsPage(msgspec.Struct, frozen=True):
    """Rewards and winners by the values of one field.

    ``sentences`` say where decisions differ most from their average, over all fields.
    ``contextual`` is false if the policy ignores the context.
    """

    name: str
    fields: list[str]
    slots: list[str]
    slot: str
    contextual: bool
    sentences: list[str]
    field: FieldDetails | None
