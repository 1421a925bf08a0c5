"""When and where something is measured, in words that a page can repeat."""

import os
import platform
from datetime import UTC, datetime

from submax import __version__


def when_and_where() -> str:
    """Return the date, the machine and the versions.

    >>> when_and_where().count(", ") >= 4
    True
    """
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores {platform.machine()}, "
        f"{platform.system()}, Python {platform.python_version()}, submax {__version__}"
    )
