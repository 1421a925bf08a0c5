"""Decisions that could not be taken as asked, and were taken more simply."""

from typing import Self


class Fallback(UserWarning):
    """Says what was done instead, and for how many ``decisions``."""

    def __init__(self, message: str, decisions: int) -> None:
        super().__init__(message)
        self.decisions = decisions

    def __reduce__(self) -> tuple[type[Self], tuple[str, int]]:
        # An exception is pickled by its message alone, and could not be made again from that.
        return type(self), (str(self), self.decisions)
