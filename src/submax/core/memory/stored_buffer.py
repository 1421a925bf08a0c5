"""A buffer whose rows are written to state files."""

from typing import Self

from submax.core.memory.buffer import Buffer
from submax.core.running.stored import stored


@stored("stored-buffer")
class StoredBuffer(Buffer):
    """Rows to which a model is fitted again after a state is read from a file.

    The rows of a plain `Buffer` are not written to files, since decisions do not need them.
    """

    __slots__ = ()

    def for_deciding(self) -> Self:
        """Return all rows: without them there would be no model to decide with."""
        return self
