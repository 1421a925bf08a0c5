"""UUIDs as Arrow texts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.live.store.columns.uuid_characters import TEXT_LENGTH, uuid_characters


def uuid_texts(uuids: NDArray[np.uint8]) -> Any:
    """Return the texts of UUIDs, which are given by their bytes, ``[n, 16]``.

    >>> uuid_texts(np.arange(16, dtype=np.uint8)[None]).to_pylist()
    ['00010203-0405-0607-0809-0a0b0c0d0e0f']
    """
    import pyarrow as pa

    count = len(uuids)
    texts = uuid_characters(uuids)
    offsets = np.arange(count + 1, dtype=np.int32) * TEXT_LENGTH
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(texts))
