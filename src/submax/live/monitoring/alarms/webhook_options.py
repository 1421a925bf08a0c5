"""What the operator of a process allows webhooks to do."""

import os
from collections.abc import Mapping
from typing import NamedTuple, Self

from submax.core.errors import InputError
from submax.core.processes import INVALID_VARIABLE, variable_text

SECRET, PRIVATE = "SUBMAX_WEBHOOK_SECRET", "SUBMAX_WEBHOOK_PRIVATE"
"""The environment variables of these options."""
TRUTH = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}


class WebhookOptions(NamedTuple):
    """Options of the process, which declarations of bandits cannot change.

    ``secret`` signs what is sent; None: it is not signed. With ``private`` alarms may be sent to
    addresses of this machine and of private networks, which is otherwise refused: a declaration
    over HTTP must not reach services that only this machine can reach.
    """

    secret: str | None = None
    private: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The options of this process; an ``InputError`` if a variable has a wrong value."""
        variable, private = variable_text(PRIVATE, environment)
        word = (private or "").lower()
        if word not in TRUTH:
            raise InputError(
                f"the variable {variable} was {private!r:.40}, and 1 or 0 is allowed: set one of "
                "these, or unset it",
                code=INVALID_VARIABLE,
            )
        return cls(variable_text(SECRET, environment)[1], TRUTH[word])
