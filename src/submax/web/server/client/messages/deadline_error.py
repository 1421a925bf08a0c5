"""The error of a call that took too long."""

from typing import Self

from submax.core.errors import StoreError

GRACE_SECONDS = 0.2
"""How much longer a caller waits for the sender of its request, whose error says more."""


class DeadlineError(StoreError):
    """The deadline of a call is over. It may be repeated with the same id."""

    default_code = "deadline"

    @classmethod
    def while_waiting(cls) -> Self:
        """The error of a call that waited too long for earlier calls of the same client."""
        return cls(
            "the deadline was over while earlier requests of this client were under way: see that "
            "the server is not too slow, or give a longer deadline"
        )
