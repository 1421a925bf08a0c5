"""Segments of training rows that are computed again from the log."""

from threading import Lock

from submax.bandit.settings import Settings
from submax.live.archive.log_reader import LogReader
from submax.live.log.ledger import Ledger
from submax.live.log.rows.row_segments import DamagedRowsError, RowSegments
from submax.live.store.store import Store
from submax.schema.rows import Columns


class DerivedRows(RowSegments):
    """Reads the log from its beginning until the segment that is asked for is complete.

    Segments that are read one after the other are found in one pass over the log. Only segments
    that were not asked for yet are held in memory, of which there are one or two.
    """

    def __init__(self, store: Store, name: str, settings: Settings) -> None:
        super().__init__()
        self._store, self._name, self._settings = store, name, settings
        self._found: dict[int, Columns] = {}
        self._lock = Lock()
        self._begin()

    def read(self, number: int) -> Columns:
        with self._lock:
            if number < len(self) and number not in self._found:
                self._begin()
            while number not in self._found:
                self._read_page(number)
            self._found = {n: rows for n, rows in self._found.items() if n >= number}
            return self._found[number]

    def _begin(self) -> None:
        self._found, self.hashes = {}, []
        self._log = LogReader(self._store, self._name)
        self._ledger = Ledger(
            self._settings, self._log.read_page, find=self._log.find, segments=self
        )

    def _read_page(self, number: int) -> None:
        page = self._log.read_page(self._ledger.read_position)
        if not len(page):
            raise DamagedRowsError(
                f"segment {number} of the rows of {self._name!r} does not follow from the log: "
                "run submax doctor, and restore a backup"
            )
        self._ledger.follow(until=int(page.position[-1]))

    def _keep(self, number: int, rows: Columns) -> None:
        self._found[number] = rows
