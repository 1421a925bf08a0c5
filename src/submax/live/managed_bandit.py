"""Operating a bandit: its choices come and go, its versions are published."""

from collections.abc import Mapping

import msgspec

from submax.core.errors import ConflictError, InputError, NotFoundError
from submax.live.audit_log import PYTHON, AuditEntry, AuditLog
from submax.live.bandit_base import BanditBase
from submax.live.declaring.delete import delete_bandit
from submax.live.fitting.online_learner import OnlineLearner
from submax.live.lift.lift_report import LiftReport, lift_reports
from submax.live.log.records import CHOICE, PUBLISHED, Fitted, Published
from submax.live.store.event import Entry
from submax.schema.action_features import clean_features
from submax.schema.choices import ARMS, STATUS, Change


class ManagedBandit(BanditBase):
    """A bandit whose choices can be changed and whose versions can be published."""

    def add(
        self,
        choice: str,
        *,
        slot: str = ARMS,
        features: Mapping[str, float | str] | None = None,
    ) -> None:
        """Add an arm, or a choice to a slot; it is eligible at once.

        If the choices have features, the new one must bring the same ones: ``features`` is a table
        of numbers and texts. A text that no other choice has is a new category.
        """
        cleaned = clean_features(choice, {} if features is None else features)
        self.change(Change("add", choice, slot, cleaned))

    def pause(self, choice: str, *, slot: str = ARMS) -> None:
        """Make a choice ineligible until ``resume``."""
        self.change(Change("pause", choice, slot))

    def resume(self, choice: str, *, slot: str = ARMS) -> None:
        """Make a paused choice eligible again."""
        self.change(Change("resume", choice, slot))

    def retire(self, choice: str, *, slot: str = ARMS) -> None:
        """Make a choice ineligible for ever; its name cannot be used again."""
        self.change(Change("retire", choice, slot))

    def change(self, change: Change) -> None:
        """Apply a change to a choice."""
        self._live_state.follow()
        self.settings.guard_rails.check(self.menu.changed(change))
        key = f"choice {change.slot}\n{change.choice}" if change.verb == "add" else None
        entry = Entry(CHOICE, msgspec.msgpack.encode(change), key)
        (written,) = self._append_setting([entry])
        if not written.new:
            raise ConflictError(
                f"{change.choice!r} is there already, and the name of a choice is used once: give "
                "another name"
            )
        # Another process may have made a conflicting change at the same moment.
        if self.menu.status(change) != STATUS[change.verb]:
            raise ConflictError(
                f"{change.choice!r} was changed by another process at the same moment: look at the "
                "menu, and repeat the call if it is still needed"
            )

    def delete(self) -> None:
        """Delete the bandit with its log, versions and settings, and close it.

        This cannot be undone; ``submax backup`` and ``submax export`` make copies. The name can be
        declared again.
        """
        self._check_open()
        if isinstance(self._learner, OnlineLearner):
            raise InputError(
                "a bandit in memory was to be deleted, and only one with a store can be: close it, "
                "and delete the files that save has written"
            )
        delete_bandit(self.store, self.name)
        AuditLog(self.store).write(AuditEntry("delete", self.name, "", PYTHON))
        self._live_state.follow()
        self.close()

    def lift(self) -> list[LiftReport]:
        """How much more a decision of the bandit earns than one of the holdout and of the control.

        One report for each of the two that is declared. The intervals are valid however often one
        looks; decisions count when they have matured.
        """
        ledger = self.ledger()
        projection = self._live_state.projection
        return lift_reports(
            projection.settings, ledger.comparisons.by_group, projection.groups_since
        )

    def versions(self) -> list[Fitted]:
        """All versions, oldest first."""
        self._live_state.follow()
        return [fitted for _, fitted in sorted(self._live_state.projection.versions.items())]

    def publish(self, version: int | None = None) -> int:
        """Let a version decide, and hold it: newer versions are fitted but do not decide.

        Without a version the newest one decides, and so will those that are fitted later.
        """
        self._check_versions()
        self._live_state.follow()
        known = self._live_state.projection.versions
        chosen = max(known, default=0) if version is None else version
        if chosen != 0 and chosen not in known:
            raise NotFoundError(
                f"there is no version {version!r}: give 0 to {max(known, default=0)}, the newest"
            )
        if chosen != 0:
            self._live_state.loaded(chosen)
        published = Published(chosen, held=version is not None)
        self._append_setting([Entry(PUBLISHED, msgspec.msgpack.encode(published))])
        return chosen

    def roll_back(self) -> int:
        """Publish the last version before the current one that was published, and hold it."""
        self._check_versions()
        self._live_state.follow()
        history = [one.version for one in self._live_state.projection.published]
        if not history:
            raise ConflictError(
                "no version was published yet, so that there is none to go back to: refit first"
            )
        return self.publish(max((one for one in history if one < history[-1]), default=0))

    def _check_versions(self) -> None:
        if isinstance(self._learner, OnlineLearner):
            raise InputError(
                "a bandit in memory keeps no versions to choose from; one with a store does: use "
                "submax.open with a file, or save this one before it learns further"
            )
