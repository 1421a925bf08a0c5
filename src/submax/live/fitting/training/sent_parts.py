"""Which parts of training rows the training process has."""

from submax.live.fitting.training.job_part import JobPart
from submax.live.log.rows.lazy_rows import RowPart
from submax.schema.rows import Columns

KEPT_NUMBERS = 2**25
"""Numbers in the contexts and actions of the parts that the process keeps: twice as many as the
contexts of one job can have. Contexts are float32, 128 MB of them; actions are float64."""


class SentParts:
    """The parts that the training process keeps, so that each is read and sent once.

    Parts with a key never change. Beyond ``most`` numbers, those that were not used for longest are
    forgotten.
    """

    def __init__(self, most: int = KEPT_NUMBERS) -> None:
        self._most = most
        # From the part that was not used for longest to the last one.
        self._sizes: dict[str, int] = {}

    def job_part(self, part: RowPart) -> JobPart:
        """Return how a part is named in the next job."""
        key = part.key
        if key is None:
            return JobPart(None, 0, part.rows, sent=True)
        known = key in self._sizes
        self._sizes[key] = self._sizes.pop(key, 0)
        return JobPart(key, part.first, part.first + part.rows, sent=not known)

    def note(self, key: str | None, rows: Columns) -> None:
        """Note how large a part is that was sent."""
        if key is not None:
            self._sizes[key] = rows.context.size + rows.action.size

    def surplus(self, used: set[str]) -> tuple[str, ...]:
        """Return the keys to forget before the next job, which uses others, and forget them."""
        found, total = [], sum(self._sizes.values())
        for key, size in self._sizes.items():
            if total <= self._most:
                break
            if key not in used:
                found.append(key)
                total -= size
        for key in found:
            del self._sizes[key]
        return tuple(found)

    def clear(self) -> None:
        """Note that a new process has no parts."""
        self._sizes.clear()
