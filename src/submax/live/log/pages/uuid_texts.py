"""UUIDs as Arrow texts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
TEXT_LENGTH = 36
DASHES = (8, 13, 18, 23)
"""Where the dashes are in the text of a UUID."""
DIGIT_PLACES = [place for place in range(TEXT_LENGTH) if place not in DASHES]


def uuid_texts(uuids: NDArray[np.uint8]) -> Any:
    """Return the texts of UUIDs, which are given by their bytes, ``[n, 16]``.

    >>> uuid_texts(np.arange(16, dtype=np.uint8)[None]).to_pylist()
    ['00010203-0405-0607-0809-0a0b0c0d0e0f']
    """
    import pyarrow as pa

    count = len(uuids)
    texts = np.full((count, TEXT_LENGTH), ord("-"), np.uint8)
    digits = np.empty((count, 32), np.uint8)
    digits[:, 0::2], digits[:, 1::2] = DIGITS[uuids >> 4], DIGITS[uuids & 15]
    texts[:, DIGIT_PLACES] = digits
    offsets = np.arange(count + 1, dtype=np.int32) * TEXT_LENGTH
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(texts))
