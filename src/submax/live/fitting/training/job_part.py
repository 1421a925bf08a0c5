"""How a part of the training rows is named in a job."""

from typing import NamedTuple


class JobPart(NamedTuple):
    """The rows from number ``first`` up to number ``end`` of a part of the training rows.

    ``key`` names a part that the training process keeps for later jobs; None if it is used once.
    ``sent`` says whether the rows of the part follow the job; if not, the process has them.
    """

    key: str | None
    first: int
    end: int
    sent: bool
