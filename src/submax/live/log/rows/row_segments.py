"""Where full segments of training rows are kept, outside the memory of the ledger."""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from submax.core.errors import InputError
from submax.core.serialization import state_bytes
from submax.live.log.rows.stored_columns import stored_columns
from submax.live.store.store import Store
from submax.schema.rows import Columns


class DamagedRowsError(InputError):
    """A segment of rows is missing or was changed; it can be made anew from the log."""


class RowSegments(ABC):
    """Segments of equal size, which never change; ``hashes`` has the hash of each."""

    needs_contexts: ClassVar[bool] = True
    """Whether the rows must have their contexts."""

    def __init__(self, hashes: Sequence[str] = ()) -> None:
        self.hashes = list(hashes)

    def __len__(self) -> int:
        return len(self.hashes)

    def append(self, rows: Columns) -> None:
        """Keep one more segment."""
        self._keep(len(self.hashes), rows)
        # The hash comes last: if keeping fails, the segment does not count.
        self.hashes.append(rows.hash)

    @abstractmethod
    def read(self, number: int) -> Columns:
        """Return a segment; raise a ``DamagedRowsError`` if it is missing or was changed."""

    def remove(self, end: int) -> Iterator[None]:
        """Remove the stored segments below ``end``, if they can be read nevertheless.

        Yields after each segment.
        """
        return iter(())

    @abstractmethod
    def _keep(self, number: int, rows: Columns) -> None:
        """Keep the rows of a segment."""


class MemorySegments(RowSegments):
    """Segments in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[Columns] = []

    def read(self, number: int) -> Columns:
        return self._rows[number]

    def _keep(self, number: int, rows: Columns) -> None:
        self._rows.append(rows)


class ForgottenSegments(RowSegments):
    """Segments that are counted and forgotten, for readers that need no rows."""

    needs_contexts = False

    def read(self, number: int) -> Columns:
        raise DamagedRowsError(f"segment {number} was not kept: this reader needs no rows")

    def _keep(self, number: int, rows: Columns) -> None:
        pass


class StoredSegments(RowSegments):
    """Segments as blobs of a store.

    ``leads`` says whether this process may write them; if not, new ones stay in memory.
    ``derived`` computes a segment from the log if its blob was removed to save space.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        hashes: Sequence[str] = (),
        leads: Callable[[], bool] | None = None,
        derived: RowSegments | None = None,
    ) -> None:
        super().__init__(hashes)
        self._derived = derived
        self._store, self._name = store, name
        self._leads = leads or (lambda: store.leads(name))
        self._in_memory: dict[int, Columns] = {}

    def read(self, number: int) -> Columns:
        if number in self._in_memory:
            return self._in_memory[number]
        data = self._store.get_blob(self._blob(number))
        if data is None and self._derived is not None and number < self._removed():
            columns: Columns | None = self._derived.read(number)
        else:
            columns = stored_columns(data, self.hashes[number])
        if columns is None or columns.hash != self.hashes[number]:
            raise DamagedRowsError(
                f"segment {number} of the rows of {self._name!r} is missing or damaged: the next "
                "fit makes it anew from the log"
            )
        return columns

    def remove(self, end: int) -> Iterator[None]:
        if self._derived is None:
            return
        end = max(min(end, len(self)), self._removed())
        # Blobs are removed in order, so that those which are left can be found by bisection.
        first = bisect_left(
            range(end),
            True,
            key=lambda number: self._store.get_blob(self._blob(number)) is not None,
        )
        if first < end:
            # Written first: a blob that is missing for another reason is damage.
            self._store.put_blob(self._removed_blob, b"%d" % end)
        for number in range(first, end):
            self._store.delete_blob(self._blob(number))
            yield

    def _removed(self) -> int:
        """The number of segments whose blobs may have been removed."""
        return int(self._store.get_blob(self._removed_blob) or 0)

    def _keep(self, number: int, rows: Columns) -> None:
        if self._leads():
            self._store.put_blob(self._blob(number), state_bytes(rows, {}))
        else:
            self._in_memory[number] = rows

    @property
    def _removed_blob(self) -> str:
        return f"{self._name}/removed-rows"

    def _blob(self, number: int) -> str:
        return f"{self._name}/rows/{number}"
