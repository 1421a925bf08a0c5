"""Which feedback an estimator keeps."""

from dataclasses import dataclass

from submax.core.checks import whole_number
from submax.core.errors import InputError

NEGLIGIBLE = 1e-4
"""Rows whose weight has fallen below this share of the largest weight are dropped."""


@dataclass(frozen=True)
class Memory:
    """All feedback by default; less if the truth may change, or if memory is short.

    ``window`` keeps only the latest rows, this many. ``reservoir`` keeps the rows of the last
    update, and a uniform random sample of this many older rows. ``discount`` multiplies the weight
    of a row by this factor for every later row, and can be combined with either of the others.

    Reference: Vitter (1985); Garivier and Moulines (2011).
    """

    window: int | None = None
    reservoir: int | None = None
    discount: float = 1.0

    def __post_init__(self) -> None:
        for name, rows in (("window", self.window), ("reservoir", self.reservoir)):
            if rows is not None:
                whole_number(name, rows, at_least=1)
        if self.window is not None and self.reservoir is not None:
            raise InputError(
                "window and reservoir were both given, and only one is allowed: leave one out",
                parameter="reservoir",
            )
        number = isinstance(self.discount, (int, float)) and not isinstance(self.discount, bool)
        if not (number and 0 < self.discount <= 1):
            raise InputError(
                f"discount must be a number above 0, at most 1, not {self.discount!r}",
                parameter="discount",
            )

    @property
    def forgets(self) -> bool:
        """Whether old rows are dropped or count less."""
        return self.window is not None or self.reservoir is not None or self.discount < 1
