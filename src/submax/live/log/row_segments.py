"""Where full segments of training rows are kept, outside the memory of the ledger."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from submax.core.errors import InputError
from submax.core.running.state_file import state_bytes
from submax.live.log.stored_columns import stored_columns
from submax.live.store.store import Store
from submax.schema.columns import Columns


class DamagedRowsError(InputError):
    """A segment of rows is missing or was changed; it can be made anew from the log."""


class RowSegments(ABC):
    """Segments of equal size, which never change; ``hashes`` has the hash of each."""

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
    """Segments that are counted and forgotten, for readers that need only the last rows."""

    def read(self, number: int) -> Columns:
        raise DamagedRowsError(f"segment {number} was not kept: this reader needs no rows")

    def _keep(self, number: int, rows: Columns) -> None:
        pass


class StoredSegments(RowSegments):
    """Segments as blobs of a store.

    ``leads`` says whether this process may write them; if not, new ones stay in memory.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        hashes: Sequence[str] = (),
        leads: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__(hashes)
        self._store, self._name = store, name
        self._leads = leads or (lambda: store.leads(name))
        self._in_memory: dict[int, Columns] = {}

    def read(self, number: int) -> Columns:
        if number in self._in_memory:
            return self._in_memory[number]
        data = self._store.get_blob(self._blob(number))
        columns = stored_columns(data, self.hashes[number])
        if columns is None:
            raise DamagedRowsError(
                f"segment {number} of the rows of {self._name!r} is missing or damaged: the next "
                "fit makes it anew from the log"
            )
        return columns

    def _keep(self, number: int, rows: Columns) -> None:
        if self._leads():
            self._store.put_blob(self._blob(number), state_bytes(rows, {}))
        else:
            self._in_memory[number] = rows

    def _blob(self, number: int) -> str:
        return f"{self._name}/rows/{number}"
