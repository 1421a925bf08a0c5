"""The last of the rows that were learned from."""

from submax.schema.rows import Columns

MAX_PART_ROWS = 8192
"""Parts are not joined beyond this size, so that the oldest part can be forgotten in time."""


class RecentRows:
    """The last rows of a growing list: at least ``most`` of them, or all if there are fewer.

    Rows come in small parts. Two parts are joined when the later one has at least half the rows of
    the one before it, so that there are few parts and no row is copied often.
    """

    def __init__(self, most: int, parts: list[Columns] | None = None) -> None:
        self.most = most
        self.parts: list[Columns] = [] if parts is None else parts
        self.count = sum(len(part.reward) for part in self.parts)

    def add(self, rows: Columns) -> None:
        """Append rows, and forget the oldest part if there are enough rows without it."""
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
        return 2 * sizes[1] >= sizes[0] and sum(sizes) <= MAX_PART_ROWS
