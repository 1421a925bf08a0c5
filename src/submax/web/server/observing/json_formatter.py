"""Writes messages of the log as JSON."""

import logging

import msgspec

from submax.web.server.observing.log_record import record_fields, record_time

ENCODER = msgspec.json.Encoder(enc_hook=str)


class JsonFormatter(logging.Formatter):
    """One JSON object for each message: time, level, logger, event, message, and its fields.

    ``event`` is a fixed word for programs, such as ``request``; it is ``message`` if the message
    has no other. A traceback is in ``exception``.
    """

    def format(self, record: logging.LogRecord) -> str:
        table = {
            "time": record_time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": getattr(record, "event", "message"),
            "message": record.getMessage(),
            **record_fields(record),
        }
        if record.exc_info:
            table["exception"] = self.formatException(record.exc_info)
        return ENCODER.encode(table).decode()
