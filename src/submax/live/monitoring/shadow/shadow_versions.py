"""The versions of a shadow: fitted, stored and loaded."""

import time
from collections.abc import Callable
from typing import Any

from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.live.fitting.training.training_process import TrainingProcess
from submax.live.fitting.version_fitter import FitInput, VersionFitter
from submax.live.log.records import Fitted
from submax.live.monitoring.shadow.fit_source import FitSource
from submax.live.monitoring.shadow.shadow_judge import ShadowJudge
from submax.live.monitoring.shadow.shadow_log import ShadowLog
from submax.live.monitoring.shadow.shadow_records import FITTED
from submax.live.serving.live_state import LiveState
from submax.live.store.store import Store
from submax.policies.specification import PolicySpecification
from submax.schema.model import Model, hash_of

Append = Callable[[str, object], None]
"""Writes an event of a kind to the stream of the shadow, and reads it back into the log."""


class ShadowVersions:
    """Fits versions by the same rows and rules as the bandit does; the newest model is stored."""

    def __init__(
        self,
        store: Store,
        name: str,
        live_state: LiveState,
        source: FitSource,
        log: ShadowLog,
        training: TrainingProcess | None = None,
    ) -> None:
        self._store, self._name, self._live_state = store, name, live_state
        self._source, self._log = source, log
        self._fitter = VersionFitter(store, f"{name}/shadow", training)

    def specification(self) -> PolicySpecification:
        """The specification of the shadow's policy."""
        shadow = self._live_state.settings.shadow
        assert shadow is not None, "there is a shadow"
        return PolicySpecification(shadow)

    @property
    def outdated(self) -> bool:
        """Whether the newest version was fitted for other choices than the active ones."""
        versions, active = self._log.versions, self._live_state.projection.menu.active
        return bool(versions) and versions[max(versions)].active != active

    def input(self) -> FitInput:
        """What the next version would be fitted to."""
        return self._source.input_for(self.specification(), dict(self._log.versions))

    def must_wait(self, given: FitInput) -> bool:
        """Whether a fit would wait for the training of another model."""
        return self._fitter.must_wait(given)

    def fit(self, given: FitInput, read: int, append: Append) -> tuple[ShadowJudge, float]:
        """Fit a version for decisions after the position ``read``; return it and its seconds."""
        begin = time.monotonic()
        model, base = self._fitter.fit(given)
        seconds, data = time.monotonic() - begin, model.to_bytes()
        number, settings = max(self._log.versions, default=0) + 1, given.settings
        old = self._log.versions.get(number - 1)
        assert settings.shadow is not None, "there is a shadow"
        fitted = Fitted(
            version=number,
            model=hash_of(data),
            policy=settings.shadow,
            rows=given.rows.count,
            learned=given.learned,
            read=max(given.read, read),
            rows_hash=given.rows_hash,
            seed=settings.seed,
            active=model.active,
            ahead=given.ahead,
            base=base,
        )
        self._store.put_blob(self._blob(fitted.model), data)
        append(FITTED, fitted)
        if old is not None and old.model != fitted.model:
            self._store.delete_blob(self._blob(old.model))
        return self._judge(given.policy, model, number), seconds

    def loaded(self) -> tuple[ShadowJudge, int]:
        """The newest version from the store, and the position after which it judges.

        Without a version it is the policy before any data, which judges from the beginning.
        """
        policy = self.specification().build()
        if self._log.versions:
            fitted, data = self.newest()
            model = Model.from_bytes(data, fitted.model, policy)
            return self._judge(policy, model, fitted.version), fitted.read
        settings = self._live_state.settings
        schema = settings.schema(self._live_state.projection.menu)
        return self._judge(policy, Model.fresh(schema, policy, settings.seed), 0), 0

    def newest(self) -> tuple[Fitted, bytes]:
        """The newest version and its model; an ``InputError`` if there is none."""
        if not self._log.is_of(self._live_state.settings) or not self._log.versions:
            raise InputError(
                "the shadow has no version yet, and only a version can be promoted: wait until "
                "decisions have matured, or call refit"
            )
        fitted = self._log.versions[max(self._log.versions)]
        data = self._store.get_blob(self._blob(fitted.model))
        if data is None or hash_of(data) != fitted.model:
            raise InputError(
                f"the model of version {fitted.version} of the shadow is missing or damaged: wait "
                "for the next one, or call refit"
            )
        return fitted, data

    def _judge(self, policy: Policy[Any], model: Model, number: int) -> ShadowJudge:
        projection = self._live_state.projection
        return ShadowJudge(projection.settings, projection.menu, policy, model, number)

    def _blob(self, model: str) -> str:
        return f"{self._name}/shadow/models/{model}"
