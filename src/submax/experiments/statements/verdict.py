"""What the results say about a statement."""

from enum import StrEnum


class Verdict(StrEnum):
    """Whether a statement holds in the results, by differences and their standard errors."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    NOT_RUN = "not run"
