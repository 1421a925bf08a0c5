"""What the operator of a process allows webhooks to do."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Self

from submax.core.errors import InputError

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
        private = environment.get(PRIVATE, "").lower()
        if private not in TRUTH:
            raise InputError(
                f"the environment variable {PRIVATE} is {private!r:.40}, and 1 or 0 is allowed: "
                "set one of these, or unset it",
                code="invalid-environment",
            )
        return cls(_secret(environment), TRUTH[private])


def _secret(environment: Mapping[str, str]) -> str | None:
    """The secret, or the contents of the file that the variable with _FILE names."""
    file = environment.get(f"{SECRET}_FILE")
    if not file:
        return environment.get(SECRET) or None
    try:
        return Path(file).read_text().strip() or None
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"the environment variable {SECRET}_FILE names {file!r:.80}, which cannot be read "
            f"({getattr(error, 'strerror', None) or error}): name a file with the secret, or "
            "unset it",
            code="invalid-environment",
        ) from error
