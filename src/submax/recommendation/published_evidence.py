"""A measured result that supports a rule."""

from typing import Literal

import msgspec

COLUMNS = {"regret": "final_mean", "reward": "final_reward_mean", "mistakes": "final_mean"}
"""The column of a published summary that has the mean of each measure."""
HOME = "https://github.com/submax/submax/blob/main/"
"""Where the pages can be read without a checkout."""
BETTER = {"regret": "less", "reward": "more", "mistakes": "fewer"}
"""Which values of a measure are better."""


class PublishedEvidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of a published page.

    ``numbers`` has the mean and the standard error of policies on one ``problem``: the rows of the
    file ``data`` whose columns are as ``where`` says. Evidence of another form is a ``sentence``
    whose numbers stand in the ``quotes``, which are parts of the ``page``.
    """

    page: str
    data: str = ""
    where: dict[str, str] = {}
    measure: Literal["", "regret", "reward", "mistakes"] = ""
    problem: str = ""
    numbers: dict[str, tuple[float, float]] = {}
    sentence: str = ""
    quotes: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"{HOME}{self.page}"

    def __str__(self) -> str:
        if self.sentence:
            return self.sentence
        found = ", ".join(f"`{name}` {_pair(*pair)}" for name, pair in self.numbers.items())
        head = f"{self.measure.capitalize()} ({BETTER[self.measure]} is better)"
        return f"{head}, {self.problem}: {found}."


def _pair(mean: float, error: float) -> str:
    """A mean with its error, without digits that the error makes meaningless."""
    digits = 0 if mean >= 100 else 1
    return f"{mean:.{digits}f} ± {error:.{digits}f}"
