"""The parts of a message of the log."""

import logging
from datetime import UTC, datetime
from typing import Any

from submax.web.server.observing.request_context import CURRENT


def record_time(record: logging.LogRecord) -> str:
    """When a message was written, in UTC to the millisecond, in the form of ISO 8601."""
    at = datetime.fromtimestamp(record.created, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def record_fields(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a message, and the request during which it was written."""
    fields: dict[str, Any] = {}
    current = CURRENT.get()
    if current is not None:
        fields["request_id"] = current.identifier
        if current.bandit:
            fields["bandit"] = current.bandit
    fields.update(getattr(record, "fields", {}))
    return fields
