"""Writes messages of the log for people."""

import logging

from submax.web.server.observing.log_record import record_fields, record_time


class TextFormatter(logging.Formatter):
    """A line with time, level, message and fields; a traceback follows on its own lines."""

    def format(self, record: logging.LogRecord) -> str:
        # A text of a request must not look like a line of its own.
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        parts = [record_time(record), record.levelname, message]
        parts += [
            f"{name}={value}"
            for name, value in record_fields(record).items()
            if str(value) not in message
        ]
        line = " ".join(parts)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
