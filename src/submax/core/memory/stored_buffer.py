"""A buffer whose rows are stored with the state."""

from typing import Self

from submax.core.memory.buffer import Buffer
from submax.core.running.stored import stored


@stored("stored-buffer")
class StoredBuffer(Buffer):
    """Rows that a model must be fitted to again when a state is read from a file.

    The rows of a plain `Buffer` are left out of a file, since decisions do not need them.
    """

    __slots__ = ()

    def for_deciding(self) -> Self:
        """All rows: without them there is no model to decide with."""
        return self
