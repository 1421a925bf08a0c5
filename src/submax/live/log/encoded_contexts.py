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
DECODER = msgspec.msgpack.Decoder(list[Value])


def encoded_contexts(schema: ContextSchema, contexts: Sequence[msgspec.Raw]) -> NDArray[np.float32]:
    """Return the encoded contexts, ``[n, D]``, of contexts as they are in the bodies of decisions.

    An ``InputError`` is raised if a context is damaged.
    """
    if all(isinstance(field, Number) for field in schema.fields):
        numbers = _numbers(b"".join(contexts), len(contexts), len(schema.fields))
        if numbers is not None:
            return numbers
    try:
        return schema.encode_many([DECODER.decode(context) for context in contexts])
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(
            f"the context of a decision is damaged or from a newer submax ({error}): run submax "
            "doctor, install a newer submax, or restore a backup"
        ) from error


def _numbers(data: bytes, count: int, width: int) -> NDArray[np.float32] | None:
    """Decode arrays of ``width`` floats each; None if some of them hold anything else."""
    header = [SHORT_ARRAY + width] if width < LONG else [LONG_ARRAY, width // 256, width % 256]
    size = len(header) + NUMBER_BYTES * width
    if len(data) != count * size:
        return None
    rows = np.frombuffer(data, np.uint8).reshape(count, size)
    values = rows[:, len(header) :].reshape(count, width, NUMBER_BYTES)
    if (rows[:, : len(header)] != header).any() or (values[..., 0] != FLOAT).any():
        return None
    numbers: NDArray[np.float32] = (
        np.ascontiguousarray(values[..., 1:]).view(">f8")[..., 0].astype(np.float32)
    )
    return numbers
