"""UUIDs as characters."""

import numpy as np
from numpy.typing import NDArray

DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
TEXT_LENGTH = 36
DASHES = (8, 13, 18, 23)
"""Where the dashes are in the text of a UUID."""
DIGIT_PLACES = [place for place in range(TEXT_LENGTH) if place not in DASHES]


def uuid_characters(uuids: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the texts of UUIDs, which are given by their bytes: ``[n, 16] -> [n, 36]``.

    >>> uuid_characters(np.arange(16, dtype=np.uint8)[None]).tobytes()
    b'00010203-0405-0607-0809-0a0b0c0d0e0f'
    """
    texts = np.full((len(uuids), TEXT_LENGTH), ord("-"), np.uint8)
    digits = np.empty((len(uuids), 32), np.uint8)
    digits[:, 0::2], digits[:, 1::2] = DIGITS[uuids >> 4], DIGITS[uuids & 15]
    texts[:, DIGIT_PLACES] = digits
    return texts
