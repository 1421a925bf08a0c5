"""A bandit beside which a second policy decides."""

from collections.abc import Mapping
from typing import Any

import msgspec

from submax.bandit.settings import Settings
from submax.core.errors import ConflictError, InputError, NotFoundError
from submax.core.policy import Policy
from submax.live.bandits.managed_bandit import ManagedBandit
from submax.live.declaring.declare import declare
from submax.live.fitting.refitter import Refitter
from submax.live.log.bandits import model_name
from submax.live.log.records import CHANGED, PROMOTED, PUBLISHED, VERSION, Promoted, Published
from submax.live.monitoring.alarms.alarm_log import AlarmLog
from submax.live.monitoring.alarms.alarm_records import Alarm
from submax.live.monitoring.shadow.shadow_report import ShadowReport
from submax.live.monitoring.shadow.shadow_worker import ShadowWorker
from submax.live.operating.audit_log import PYTHON, AuditEntry, AuditLog
from submax.live.store.event import Entry
from submax.policies.specification import PolicySpecification

SET, PROMOTE, ROLL_BACK = "set-shadow", "promote-shadow", "roll-back-shadow"
ACKNOWLEDGE = "acknowledge-alarms"
"""The names of the operations in the audit log."""


class ShadowedBandit(ManagedBandit):
    """A bandit whose shadow can be set, compared, promoted and taken back, and which has alarms."""

    _alarm_log: AlarmLog

    def shadow(self) -> ShadowReport:
        """How the shadow compares with the policy that decides; see ``ShadowReport``."""
        self._check_open()
        self._live_state.follow()
        return self._worker().report()

    @property
    def promoted(self) -> bool:
        """Whether a promotion of a shadow can be taken back."""
        return bool(self._live_state.projection.promotions)

    def set_shadow(
        self, policy: str | Mapping[str, Any] | Policy[Any] | None, *, by: str = PYTHON
    ) -> None:
        """Let a second policy decide beside the first, or none; it is logged and never displayed.

        The same policy again begins anew, also after it was switched off. ``by`` is who is named in
        the audit log.
        """
        worker = self._worker()
        declare(self.store, self.name, {"shadow": policy})
        worker.end()
        self._live_state.follow()
        self._audit(SET, by, str(self.settings.shadow))

    def promote_shadow(self, *, by: str = PYTHON) -> int:
        """Let the shadow decide from now on, by its newest version; return the version's number.

        The policy that decided until now becomes the shadow, so that both are still compared, and
        ``roll_back_shadow`` undoes this.
        """
        worker = self._worker()
        self._live_state.follow()
        if self.settings.shadow is None:
            raise ConflictError(
                "there is no shadow to promote: set one by set_shadow, and wait until it has "
                "learned"
            )
        fitted, data = worker.newest()
        projection, before = self._live_state.projection, self.settings
        number = max(projection.versions, default=0) + 1
        # The position 0 says that the version was not fitted by the policy's own chain of versions.
        version = msgspec.structs.replace(fitted, version=number, read=0, base=0)
        self.store.put_blob(model_name(self.name, fitted.model), data)
        promoted = Promoted(before.policy, self.version, number)
        self._append_setting(
            [
                Entry(PROMOTED, msgspec.msgpack.encode(promoted)),
                self._swapped(before, fitted.policy),
                Entry(VERSION, msgspec.msgpack.encode(version), f"version {number}"),
                Entry(PUBLISHED, msgspec.msgpack.encode(Published(number))),
            ]
        )
        if self._live_state.projection.versions[number].model != fitted.model:
            raise ConflictError(
                f"another process wrote version {number} at the same moment: look at the versions, "
                "and repeat the call if it is still needed"
            )
        self._audit(PROMOTE, by, f"version {number}")
        return number

    def roll_back_shadow(self, *, by: str = PYTHON) -> int:
        """Undo the last promotion: the policy and the version before it decide again.

        The policy that had been promoted becomes the shadow again. Return the version that decides.
        """
        self._worker()
        self._live_state.follow()
        promotions = self._live_state.projection.promotions
        if not promotions:
            raise ConflictError(
                "no shadow was promoted, so that there is nothing to take back: roll_back goes to "
                "an earlier version of the same policy"
            )
        last, before = promotions[-1], self.settings
        entries = [
            Entry(PROMOTED, msgspec.msgpack.encode(Promoted(last.policy, 0, 0, undone=True))),
            self._swapped(before, last.policy),
        ]
        if self._is_stored(last.version_before):
            published = Published(last.version_before)
            entries.append(Entry(PUBLISHED, msgspec.msgpack.encode(published)))
        self._append_setting(entries)
        self._audit(ROLL_BACK, by, f"version {self.version}")
        return self.version

    def alarms(self) -> list[Alarm]:
        """The last 100 alarms, newest first; see ``Alarm``."""
        self._worker()
        return self._alarm_log.follow()[::-1]

    def active_alarms(self) -> dict[str, int]:
        """The number of active alarms by kind, as they were last read."""
        return {} if self._shadow is None else dict(self._alarm_log.active())

    def acknowledge_alarms(self, *, by: str = PYTHON) -> int:
        """Say that all alarms were seen, so that they are no longer active; return how many."""
        self._worker()
        count = self._alarm_log.acknowledge()
        if count:
            self._audit(ACKNOWLEDGE, by, f"{count} alarms")
        return count

    def smallest_propensity(self) -> float | None:
        """The smallest probability with which an action was drawn, if this process has read it."""
        learner = self._learner
        return learner.alarms.watch.state.smallest if isinstance(learner, Refitter) else None

    def _swapped(self, before: Settings, policy: str | dict[str, Any]) -> Entry:
        """The settings with another policy, beside which the one before becomes the shadow."""
        old = before.policy
        kept = None if PolicySpecification(old).is_object else old
        settings = msgspec.structs.replace(before, policy=policy, shadow=kept)
        return Entry(CHANGED, msgspec.msgpack.encode(settings))

    def _is_stored(self, version: int) -> bool:
        """Whether a version can decide; if its model is gone, the next version is fitted soon."""
        if version == 0:
            return True
        try:
            self._live_state.loaded(version)
        except (InputError, NotFoundError):
            return False
        return True

    def _worker(self) -> ShadowWorker:
        self._check_open()
        if self._shadow is None:
            raise InputError(
                "a bandit in memory has no shadow, because it has no versions; one with a store "
                "does: use submax.open with a file"
            )
        return self._shadow

    def _audit(self, operation: str, by: str, detail: str) -> None:
        # The server writes its own entry, with the key.
        if by:
            AuditLog(self.store).write(AuditEntry(operation, self.name, "", by, detail))
