"""The rows that were learned from last."""

from submax.schema.columns import Columns

PART = 8192
"""Rows that are put into one part at most."""


class RecentRows:
    """The last rows of many, at least ``most`` of them once there are so many.

    Rows come in small parts. Two parts are put together when the later one has grown to half the
    size of the one before it, so that there are few parts and no row is copied often.
    """

    def __init__(self, most: int, parts: list[Columns] | None = None) -> None:
        self.most = most
        self.parts: list[Columns] = [] if parts is None else parts
        self.count = sum(len(part.reward) for part in self.parts)

    def add(self, rows: Columns) -> None:
        """Put rows behind the others, and give up the oldest part if it is not needed."""
        if not len(rows.reward):
            return
        self.parts.append(rows)
        self.count += len(rows.reward)
        while len(self.parts) > 1 and self._mergeable(*self.parts[-2:]):
            self.parts[-2:] = [Columns.joined(self.parts[-2:])]
        while self.count - len(self.parts[0].reward) >= self.most:
            self.count -= len(self.parts.pop(0).reward)

    @staticmethod
    def _mergeable(before: Columns, last: Columns) -> bool:
        sizes = len(before.reward), len(last.reward)
        return 2 * sizes[1] >= sizes[0] and sum(sizes) <= PART
