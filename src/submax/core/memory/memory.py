"""What an estimator keeps of the past."""

from dataclasses import dataclass

from submax.core.checks import whole_number
from submax.core.errors import InputError

NEGLIGIBLE = 1e-4
"""Rows whose weight has faded below this share are left out."""


@dataclass(frozen=True)
class Memory:
    """Everything by default; less where the truth may change, or space is short.

    ``window`` keeps the last rows; ``reservoir`` keeps, beside the rows that came last, so many of
    the older ones, each with the same chance; ``discount`` multiplies the weight of a row by this
    factor with every later row, and goes with either of the others.

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
            raise InputError("give window or reservoir, not both: one drops what the other keeps")
        number = isinstance(self.discount, (int, float)) and not isinstance(self.discount, bool)
        if not (number and 0 < self.discount <= 1):
            raise InputError(f"discount must be a number above 0, at most 1, not {self.discount!r}")

    @property
    def forgets(self) -> bool:
        """Whether anything is ever left out."""
        return self.window is not None or self.reservoir is not None or self.discount < 1
