"""Sets up the log of a server process."""

import logging
import sys

from submax.web.server.observing.json_formatter import JsonFormatter
from submax.web.server.observing.text_formatter import TextFormatter


def set_up_log(form: str, level: str) -> None:
    """Write all messages to standard error, as text or JSON; warnings of Python, too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    logging.captureWarnings(True)
    for name in ("submax", "uvicorn"):
        logging.getLogger(name).setLevel(level.upper())
