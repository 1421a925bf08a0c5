"""The columns of a segment, and how each of them is compressed."""

from typing import Any

import numpy as np

from submax.bandit.settings import Settings
from submax.core.optional import require_extra
from submax.schema.context import Number

ACTION, CONTEXT = "action_", "context_"
"""The beginnings of the names of the columns of actions and contexts, followed by a number."""
REPEATED_SHARE = 0.2
"""A column of numbers whose distinct values are at most this share of its values is stored with a
dictionary, which is then smaller than the values themselves."""
ZSTD_LEVEL = 3
"""The level of zstd: higher ones take several times as long and save less than 1 %."""
INTEGERS, FLOATS = "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"
"""Encodings of Parquet: differences of integers, and the bytes of floats sorted by significance."""
ENCODINGS = {
    "position": INTEGERS,
    "time": INTEGERS,
    "id_high": INTEGERS,
    "id_low": "PLAIN",
    "back": INTEGERS,
    "about_time": INTEGERS,
    "propensity": FLOATS,
    "probabilities.list.element": FLOATS,
}
DICTIONARIES = (
    "kind",
    "reward_key",
    "source",
    "value",
    "version",
    "eligible",
    "unit",
    "group_since",
    "group",
    "holdout_share",
    "control_share",
)


def segment_schema(settings: Settings) -> Any:
    """The schema of the segments of a bandit with these settings.

    Times are the bits of floats as integers, whose differences are small. ``id_high`` and
    ``id_low`` are an id that is a UUID, ``id`` is any other. ``back`` is how many positions before
    an event the event is that it is about. ``body``, ``key`` and ``about`` are those of events that
    no other columns can describe; ``irregular`` marks such keys. See ``SegmentWriter`` for nulls.
    """
    require_extra("logs", "archiving events", "pyarrow")
    import pyarrow as pa

    actions = [pa.int64()] * len(settings.menu.slots) + [pa.float64()] * len(settings.menu.ranges)
    contexts = [
        pa.float64() if isinstance(field, Number) else pa.string()
        for field in settings.context.fields
    ]
    decided = [(f"{ACTION}{number}", one) for number, one in enumerate(actions)]
    known = [(f"{CONTEXT}{number}", one) for number, one in enumerate(contexts)]
    made = [("propensity", pa.float64()), ("version", pa.int64())]
    return pa.schema([*_of_all_events(pa), *decided, *made, *known, *_of_decisions(pa)])


def _of_all_events(pa: Any) -> list[tuple[str, Any]]:
    """The columns of all events, and those of rewards."""
    return [
        ("position", pa.int64()),
        ("time", pa.int64()),
        ("kind", pa.string()),
        ("id", pa.string()),
        ("id_high", pa.int64()),
        ("id_low", pa.int64()),
        ("back", pa.int64()),
        ("about_time", pa.int64()),
        ("irregular", pa.bool_()),
        ("key", pa.string()),
        ("about", pa.string()),
        ("body", pa.binary()),
        ("reward_key", pa.string()),
        ("value", pa.float64()),
        ("source", pa.string()),
    ]


def _of_decisions(pa: Any) -> list[tuple[str, Any]]:
    """The columns of decisions after action, propensity, version and context."""
    return [
        ("eligible", pa.binary()),
        ("probabilities", pa.list_(pa.float64())),
        ("activated", pa.bool_()),
        ("holdout", pa.bool_()),
        ("unit", pa.string()),
        ("group_since", pa.int64()),
        ("group", pa.string()),
        ("holdout_share", pa.float64()),
        ("control_share", pa.float64()),
        ("paused", pa.bool_()),
    ]


def writer_options(first: Any) -> dict[str, Any]:
    """Options of ``ParquetWriter`` for a segment that begins with the table ``first``."""
    import pyarrow as pa

    dictionaries, encodings = list(DICTIONARIES), dict(ENCODINGS)
    for field in first.schema:
        if not field.name.startswith((ACTION, CONTEXT)):
            continue
        if pa.types.is_float64(field.type) and not _repeats(first[field.name]):
            encodings[field.name] = FLOATS
        else:
            dictionaries.append(field.name)
    return {
        "compression": "zstd",
        "compression_level": ZSTD_LEVEL,
        "use_dictionary": dictionaries,
        "column_encoding": encodings,
        # Statistics help to skip parts of a file, and a segment is read as a whole.
        "write_statistics": False,
    }


def _repeats(column: Any) -> bool:
    values = column.drop_null().to_numpy()
    return len(np.unique(values)) <= REPEATED_SHARE * len(values)
