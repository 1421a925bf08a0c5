"""Contract of what learns from the log of a bandit."""

from abc import ABC, abstractmethod

from submax.live.fitting.refit_result import RefitResult
from submax.live.log.ledger import Ledger


class Learner(ABC):
    """Follows the log of a bandit and learns from decisions that have matured."""

    @abstractmethod
    def before_decision(self) -> None:
        """Called before a decision is drawn."""

    @abstractmethod
    def refit(self) -> RefitResult:
        """Learn now from what has matured, or say why not."""

    @abstractmethod
    def catch_up(self) -> Ledger:
        """The ledger after the whole log was read."""

    @abstractmethod
    def known(self) -> Ledger | None:
        """The ledger for a person who looks, without waiting for another process; or None."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """What was counted in the log so far, by kind."""

    @abstractmethod
    def snapshot(self) -> None:
        """Keep what is known, so that the next opening is quick."""
