"""Which alarms a bandit raises, and where they are sent."""

from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from submax.core.checks import probability
from submax.core.errors import InputError

MAX_ADDRESS_LENGTH = 2000


class AlarmSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Alarms and their webhook.

    ``webhook`` is an address to which every alarm is sent as JSON by POST; None: alarms are only
    shown. ``false_alarms`` is the largest chance of a false alarm about the reward rate, and about
    missing rewards, within 100,000 decisions. ``smallest_propensity`` is an alarm if an action was
    drawn with a smaller probability; 0: it never is.
    """

    webhook: Annotated[str, Meta(max_length=MAX_ADDRESS_LENGTH)] | None = None
    false_alarms: float = 0.01
    smallest_propensity: float = 0.0

    def check(self) -> None:
        """Refuse numbers that are no probabilities, and addresses that are not of the web."""
        probability("false_alarms", self.false_alarms)
        probability("smallest_propensity", self.smallest_propensity)
        if not 0 < self.false_alarms < 1:
            raise InputError(
                f"false_alarms is {self.false_alarms}, and a chance above 0 and below 1 is needed: "
                "give one such as 0.01",
                parameter="false_alarms",
            )
        if self.webhook is not None:
            check_webhook(self.webhook)


def check_webhook(address: str) -> None:
    """Refuse an address to which no alarm could be sent."""
    try:
        parts = urlsplit(address)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        good = bool(named) and "@" not in parts.netloc and len(address) <= MAX_ADDRESS_LENGTH
    except ValueError:
        good = False
    if not good or not address.isascii() or not address.isprintable() or " " in address:
        raise InputError(
            f"the webhook {address!r:.80} is not allowed: give an address such as "
            "https://hooks.example.com/submax, without a user name and password",
            parameter="webhook",
        )
