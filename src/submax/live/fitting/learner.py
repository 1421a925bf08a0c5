"""Contract of a learner, which learns from the log of a bandit."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeVar

from submax.live.fitting.refit_result import RefitResult
from submax.live.log.ledger import Ledger
from submax.live.monitoring.rollups.rollups import Rollups

Answer = TypeVar("Answer")


class Learner(ABC):
    """Follows the log of a bandit and learns from decisions that have matured."""

    @abstractmethod
    def refit(self) -> RefitResult:
        """Learn now from decisions that have matured, or say why not."""

    @abstractmethod
    def catch_up(self) -> Ledger:
        """Read the whole log, and return the ledger."""

    @abstractmethod
    def inspect(self, function: Callable[[Ledger], Answer]) -> Answer:
        """Read the whole log, and return what a function says about the ledger.

        Nobody else uses the ledger meanwhile.
        """

    @abstractmethod
    def ledger_if_read(self) -> Ledger | None:
        """Return the ledger for a summary; None if another process reads the log."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Return the counts of events and outcomes of decisions in the log so far, by kind."""

    @abstractmethod
    def rollups(self) -> Rollups | None:
        """Return the rollups as they were a moment ago, without waiting; None if there are none.

        They belong to the caller, and nothing is added to them.
        """

    @abstractmethod
    def snapshot(self) -> None:
        """Write a snapshot of the ledger, so that the next opening is quick."""
