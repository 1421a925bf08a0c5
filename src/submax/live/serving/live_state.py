"""The current state of a bandit: settings, choices and the version that decides."""

import logging
from collections import Counter
from threading import Lock
from typing import Any

from submax.bandit.active_version import ActiveVersion
from submax.bandit.rewards import RewardValues
from submax.bandit.settings import Settings
from submax.core.errors import ConflictError, InputError, NotFoundError
from submax.core.policy import Policy
from submax.core.rewards import Scale
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.bandits import model_name, settings_stream
from submax.live.store.store import Store
from submax.policies.specification import PolicySpecification
from submax.schema.actions import EncodedAction
from submax.schema.model import Model
from submax.schema.names import Action

DAMAGED = "damaged models"
"""The name under which models that cannot be read are counted among the failures of a bandit."""
LOG = logging.getLogger("submax")


class LiveState:
    """Follows the stream of settings, and replaces ``serving`` when anything changes.

    The model that decides is that of the published version, or the one last given to ``teach``.
    ``own`` is the policy object with which the bandit was opened, if any.
    """

    serving: ActiveVersion
    policy: Policy[Any]
    scale: Scale
    rewards: RewardValues

    def __init__(self, store: Store, name: str, own: Policy[Any] | None) -> None:
        self.failures: Counter[str] = Counter()
        self._store, self._name, self._own = store, name, own
        self._lock, self._stale = Lock(), True
        self._followed: int | None = None
        self._taught: tuple[int, Policy[Any], Model] | None = None
        self._read_back: dict[str, Model] = {}
        self.projection = SettingsProjection.of(store, name)
        self.follow()

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self.projection.settings

    @property
    def deleted(self) -> bool:
        """Whether the bandit was deleted, here or by another process."""
        return self.projection.deleted

    def check_exists(self) -> None:
        """Raise a ``NotFoundError`` if the bandit was deleted."""
        self.projection.check_exists(self._name)

    def check_answers(self) -> None:
        """Raise an error if the bandit was deleted or archived, so that it answers no calls."""
        self.check_exists()
        if self.settings.status == "archived":
            raise ConflictError(
                f"the bandit {self._name!r} is archived, so that it takes no decisions and no "
                "rewards: resume it, by submax resume or POST /bandits/NAME/resume",
                code="archived",
            )

    def follow(self) -> None:
        """Read new events of the stream of settings, and decide by them from now on."""
        with self._lock:
            followed = self._store.appended(settings_stream(self._name))
            self._stale = self.projection.follow() or self._stale
            if self._stale and not self.projection.deleted:
                self._renew()
                # Set at the end: if the store fails on the way, the next call tries again.
                self._stale = False
            self._followed = followed

    def may_have_changed(self) -> bool:
        """Whether the stream of settings may have events that were not read; reads nothing."""
        appended = self._store.appended(settings_stream(self._name))
        return appended is None or appended != self._followed

    def teach(self, version: int, model: Model) -> None:
        """Decide by this model from now on, whatever versions are published."""
        with self._lock:
            self._taught = version, self.policy, model
            self.serving = self.serving.with_model(self.policy, model, version)

    def expect(self, model_hash: str, model: Model) -> None:
        """Keep a model that was read back from its bytes, whose version is going to be published.

        So the version begins to decide without being read from the store.
        """
        self._read_back = {model_hash: model}

    @property
    def own(self) -> Policy[Any] | None:
        """The policy object that callers gave, if any."""
        return self._own

    def use_policy(self, own: Policy[Any]) -> None:
        """Use a policy object whenever the settings name a policy that is equal to it."""
        self._own = own

    def named(self, row: EncodedAction) -> Action:
        """An action by the names of its choices; reads choices that another process has added."""
        try:
            return self.projection.menu.action(row)
        except IndexError:
            self.follow()
            return self.projection.menu.action(row)

    def loaded(self, version: int) -> tuple[Policy[Any], Model]:
        """The policy and the model of a version."""
        fitted = self.projection.versions[version]
        data = self._store.get_blob(model_name(self._name, fitted.model))
        if data is None:
            raise NotFoundError(
                f"the model of version {version} is no longer in the store: choose a newer version"
            )
        policy = self._policy_of(version)
        return policy, Model.from_bytes(data, fitted.model, policy)

    def _policy_of(self, version: int) -> Policy[Any]:
        return PolicySpecification(self.projection.versions[version].policy).build(self._own)

    def _begun(self, version: int) -> tuple[Policy[Any], Model]:
        """The policy and the model of a version that begins to decide."""
        model = self._read_back.pop(self.projection.versions[version].model, None)
        return self.loaded(version) if model is None else (self._policy_of(version), model)

    def _renew(self) -> None:
        settings, menu = self.projection.settings, self.projection.menu
        self.policy = settings.build_policy(self._own)
        self.scale = settings.scale
        self.rewards = RewardValues(settings)
        version, policy, model = self._best()
        self.serving = ActiveVersion(
            settings,
            menu,
            policy,
            model,
            version,
            self.failures,
            self.projection.groups_since,
            self.projection.ramps,
        )

    def _best(self) -> tuple[int, Policy[Any], Model]:
        """The published version, or the last one before it whose model is undamaged."""
        if self._taught is not None:
            return self._taught
        for published in reversed(self.projection.published):
            if published.version == 0:
                break
            try:
                return published.version, *self._begun(published.version)
            except InputError as error:
                self.failures[DAMAGED] += 1
                LOG.warning("%s: version %d: %s", self._name, published.version, error)
        schema = self.settings.schema(self.projection.menu)
        return 0, self.policy, Model.fresh(schema, self.policy, self.settings.seed)
