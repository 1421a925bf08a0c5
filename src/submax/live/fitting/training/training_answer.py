"""What the training process answers to a job."""

from typing import NamedTuple

from submax.core.errors import Error


class TrainingAnswer(NamedTuple):
    """The ``model`` as bytes, or why there is none; ``warnings`` were raised on the way.

    ``error`` is an error of a class that submax defines. Of any other error ``failure`` is the
    description in one line, and ``details`` has the traceback for the log.
    """

    model: bytes = b""
    error: Error | None = None
    failure: str = ""
    details: str = ""
    warnings: tuple[tuple[str, type[Warning]], ...] = ()
