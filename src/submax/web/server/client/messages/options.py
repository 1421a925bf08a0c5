"""The options that both clients have."""

import time
from dataclasses import dataclass

from submax.core.checks import non_negative, positive, whole_number
from submax.web.server.client.messages.address import Address
from submax.web.server.client.messages.attempts import Attempts
from submax.web.server.client.messages.call import TRIAL_ANSWER_SECONDS, Call
from submax.web.server.client.messages.deadline_error import GRACE_SECONDS


@dataclass(frozen=True)
class ClientOptions:
    """How a client sends requests; the classes of the clients describe each option."""

    timeout: float
    attempts: int
    deadline: float | None
    batching: bool
    gather: float
    connections: int

    def __post_init__(self) -> None:
        positive("timeout", self.timeout)
        whole_number("attempts", self.attempts, at_least=1)
        if self.deadline is not None:
            positive("deadline", self.deadline)
        non_negative("gather", self.gather)
        whole_number("connections", self.connections, at_least=1)

    @property
    def longest_wait(self) -> float | None:
        """How many seconds a caller waits for an answer; None: until there is one."""
        return None if self.deadline is None else self.deadline + GRACE_SECONDS

    def until(self) -> float | None:
        """When a call that begins now must have ended, by the monotonic clock."""
        return None if self.deadline is None else time.monotonic() + self.deadline

    def attempts_for(self, address: Address, call: Call) -> Attempts:
        """The attempts of one request."""
        seconds = max(self.timeout, TRIAL_ANSWER_SECONDS) if call.slow else self.timeout
        return Attempts(address.place, self.attempts, seconds, call.until)
