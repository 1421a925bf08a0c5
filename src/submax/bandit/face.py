"""What a bandit in memory and one in a store have in common: the calls of their users."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self, Unpack

from submax.bandit.active_version import ActiveVersion
from submax.bandit.arms import ArmStatus
from submax.bandit.decision import Decision, LiftReport, Receipt
from submax.bandit.learning import RefitResult
from submax.bandit.settings import BanditOptions, Settings, Status
from submax.core.errors import ConflictError, StoreError
from submax.core.policy import Policy
from submax.core.summary import Summary
from submax.schema.actions import ARMS, ActionSpec, Change, clean_features


class BanditFace(ABC):
    """The methods of a bandit, with or without a store; any thread may call them."""

    def __init__(self) -> None:
        self._closed = False
        self._failures: Counter[str] = Counter()

    def decide(
        self,
        context: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002 - the word that callers know
        eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
        activate: bool = True,
        unit: str | None = None,
    ) -> Decision:
        """Choose an action.

        If a decision with this ``id`` exists, it is returned again. (A bandit in memory remembers
        the last 100,000 ids.) ``eligible`` are the names of the arms that may be chosen, or a table
        of slots with such names. With ``activate=False`` the decision is learned from only if
        ``activate`` is called before ``reward_wait`` is over.

        ``unit`` names the visitor or customer for whom the decision is made. A unit keeps its
        action for as long as the setting ``sticky`` says, and always stays in the same group: held
        out or not, with the control or not.
        """
        return self._decided(
            context=context, id=id, eligible=eligible, activate=activate, unit=unit
        )

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("this bandit is closed: open it again, or load a saved one")

    def _check_answers(self) -> None:
        """Raise an error if the bandit is closed or archived."""
        self._check_open()
        if self.settings.status == "archived":
            raise ConflictError(
                "this bandit is archived and refuses decisions and rewards: resume it first",
                code="archived",
            )

    @abstractmethod
    def _decided(self, **request: Any) -> Decision:
        """Make a decision from the arguments of ``decide``."""

    @abstractmethod
    def decide_many(self, requests: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Make several decisions, whose probabilities are computed as one array.

        Each request has arguments of ``decide``. If one is invalid, none is drawn. A store gets all
        of them in one transaction.
        """

    def reward(
        self,
        id: str,  # noqa: A002 - the same word as in decide
        value: float | Mapping[str, float] | Sequence[float],
        *,
        key: str | None = None,
        name: str | None = None,
        slot: str | None = None,
    ) -> Receipt:
        """Record a reward of a decision; if a decision has several, each needs its own ``key``.

        If rewards were declared with names, give the ``name`` of this one, or a table of names as
        the ``value``; its key is then its name, unless one is given. If every slot has a reward,
        give the ``slot``, a table of slots, or a list with one reward for each slot.

        In a store, a reward for an unknown id waits in quarantine for its decision; see
        ``Receipt``. A bandit in memory raises a ``NotFoundError``.
        """
        return self._rewarded(id=id, value=value, key=key, name=name, slot=slot)

    @abstractmethod
    def _rewarded(self, **reward: Any) -> Receipt:
        """Record a reward from the arguments of ``reward``."""

    @abstractmethod
    def reward_many(self, rewards: Iterable[Mapping[str, Any]]) -> list[Receipt]:
        """Record several rewards, each with the arguments of ``reward``, all or none.

        If another value was recorded before under the same id and key, the receipt has the status
        ``conflict``, and the other rewards are recorded.
        """

    @abstractmethod
    def activate(self, id: str) -> Receipt:  # noqa: A002 - the same word as in decide
        """Confirm a decision that was made with ``activate=False``: its action was carried out."""

    @abstractmethod
    def refit(self) -> RefitResult:
        """Learn now from all decisions that have matured; the result says what was learned."""

    def add(
        self,
        choice: str,
        *,
        slot: str = ARMS,
        features: Mapping[str, float | str] | None = None,
        ramp: int | None = None,
    ) -> None:
        """Add an arm, or a choice to a slot; it is eligible at once.

        The new choice is ramped up over ``ramp`` decisions N: after n of them its probability is
        at most (n + 1) / N, and what it does not get goes to the other choices. By default, N is
        1,000, or the number of decisions so far if that is less. With 0 there is no ramp.

        If the choices have features, the new one must have the same ones: ``features`` is a table
        of numbers and texts. A text that no other choice has is a new category.
        """
        cleaned = clean_features(choice, {} if features is None else features)
        self.change(Change("add", choice, slot, cleaned, ramp))

    def pause(self, choice: str | None = None, *, slot: str = ARMS) -> None:
        """Make a choice ineligible until ``resume``; without a choice, pause the whole bandit.

        A paused bandit answers with the control, or else the baseline, or else uniformly, and does
        not learn from these decisions.

        If the control or the baseline is paused, no decision gets it; ``notices`` say so.
        """
        if choice is None:
            self.set_status("paused")
        else:
            self.change(Change("pause", choice, slot))

    def resume(self, choice: str | None = None, *, slot: str = ARMS) -> None:
        """Make a paused choice eligible again; without a choice, resume the whole bandit."""
        if choice is None:
            self.set_status("active")
        else:
            self.change(Change("resume", choice, slot))

    def retire(self, choice: str, *, slot: str = ARMS) -> None:
        """Make a choice ineligible forever; its name cannot be reused."""
        self.change(Change("retire", choice, slot))

    def archive(self) -> None:
        """Refuse decisions and rewards until ``resume``; everything can still be read."""
        self.set_status("archived")

    @abstractmethod
    def change(self, change: Change) -> None:
        """Apply a change to a choice."""

    @abstractmethod
    def set(self, **changes: Unpack[BanditOptions]) -> Settings:
        """Change settings while the bandit is in use, all or none, and return all settings.

        They are checked as in a declaration. None stands for a setting's default. A table of guard
        rails changes those that it names. A table of a context adds fields, and categories to
        fields; earlier decisions have the default of a new field. A store records the change in its
        audit. It takes effect within a second in all processes that have the bandit open.
        """

    @abstractmethod
    def set_status(self, status: Status) -> Settings:
        """Make the bandit ``active``, ``paused`` or ``archived``."""

    @abstractmethod
    def arms(self) -> list[ArmStatus]:
        """The decisions, share, reward rate and current probability of each choice."""

    @abstractmethod
    def notices(self) -> list[str]:
        """Sentences about what an operator should look at; empty if there is nothing.

        Until a bandit in a store has a version, they say when learning starts.
        """

    @abstractmethod
    def lift(self) -> list[LiftReport]:
        """The extra reward per decision, compared with the holdout and with the control.

        There is one report for each group that is declared. The intervals are valid however often
        you look. Decisions count once they have matured.
        """

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """Counts of decisions and rewards, and of what became of decisions, by kind."""

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """The current settings."""

    @property
    @abstractmethod
    def menu(self) -> ActionSpec:
        """The actions with their current status."""

    @property
    @abstractmethod
    def active(self) -> ActiveVersion:
        """The version that decides, with the limits of choices that are ramped up."""

    @property
    def version(self) -> int:
        """The number of the version that decides; 0 before anything was learned."""
        return self.active.version

    @property
    @abstractmethod
    def policy(self) -> Policy[Any]:
        """The policy that learns next."""

    @property
    def failures(self) -> dict[str, int]:
        """How often something failed and the bandit went on, by kind of failure."""
        return dict(self._failures)

    @abstractmethod
    def close(self) -> None:
        """Refuse further calls, stop what runs in the background, and close the store."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return str(self._summary())

    @abstractmethod
    def _summary(self) -> Summary:
        """What is printed."""
