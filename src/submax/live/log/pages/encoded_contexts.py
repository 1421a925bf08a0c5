"""Decode and encode the contexts of many decisions at once."""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.errors import InputError
from submax.schema.context_schema import ContextSchema, Number, Value

FLOAT = 0xCB
"""The byte before a float of 64 bits in MessagePack, which is written with its first byte first."""
NUMBER_BYTES = 9
SHORT_ARRAY, LONG_ARRAY, LONG = 0x90, 0xDC, 16
"""The first byte of an array of fewer than 16 elements, to which their number is added, and of a
longer one, whose number of elements follows in two bytes."""
MAX_WIDTH = 1 << 16
"""A list of this many elements or more has another header."""
DECODER = msgspec.msgpack.Decoder(list[Value])


def encoded_contexts(schema: ContextSchema, contexts: Sequence[msgspec.Raw]) -> NDArray[np.float32]:
    """Return the encoded contexts, ``[n, D]``, of contexts as they are in the bodies of decisions.

    An ``InputError`` is raised if a context is damaged.
    """
    if all(isinstance(field, Number) for field in schema.fields):
        numbers = decoded_numbers(contexts, len(schema.fields))
        if numbers is not None:
            return numbers.astype(np.float32)
    try:
        return schema.encode_many([DECODER.decode(context) for context in contexts])
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(
            f"the context of a decision is damaged or from a newer submax ({error}): run submax "
            "doctor, install a newer submax, or restore a backup"
        ) from error


def decoded_numbers(lists: Sequence[msgspec.Raw], width: int) -> NDArray[np.float64] | None:
    """Decode lists of ``width`` floats, ``[n, width]``; None if some of them are anything else."""
    header = [SHORT_ARRAY + width] if width < LONG else [LONG_ARRAY, width // 256, width % 256]
    data, size = b"".join(lists), len(header) + NUMBER_BYTES * width
    if len(data) != len(lists) * size or width >= MAX_WIDTH:
        return None
    rows = np.frombuffer(data, np.uint8).reshape(len(lists), size)
    values = rows[:, len(header) :].reshape(len(lists), width, NUMBER_BYTES)
    if (rows[:, : len(header)] != header).any() or (values[..., 0] != FLOAT).any():
        return None
    numbers: NDArray[np.float64] = np.ascontiguousarray(values[..., 1:]).view(">f8")[..., 0]
    return numbers.astype(np.float64)
