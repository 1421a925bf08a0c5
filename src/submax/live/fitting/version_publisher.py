"""Writes fitted versions to a store, and deletes the models of old ones."""

import msgspec

from submax.core.errors import ConflictError
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.bandits import model_name, settings_stream
from submax.live.log.records import PUBLISHED, VERSION, Fitted, Published
from submax.live.store.event import Entry
from submax.live.store.store import Store


class VersionPublisher:
    """Publishes the versions of one bandit; one process at a time does so."""

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._deleted: set[int] = set()

    def publish(self, fitted: Fitted, data: bytes) -> None:
        """Store the bytes of a model, and let its version decide."""
        self._store.put_blob(model_name(self._name, fitted.model), data)
        published = Published(fitted.version, model=fitted.model)
        entries = [
            Entry(VERSION, msgspec.msgpack.encode(fitted), f"version {fitted.version}"),
            Entry(PUBLISHED, msgspec.msgpack.encode(published)),
        ]
        written = self._store.append(settings_stream(self._name), entries).result()
        if not written[0].new:
            raise ConflictError(
                f"another process wrote version {fitted.version} first, and one process fits "
                "versions: call refit there"
            )

    def delete_old_models(self, projection: SettingsProjection) -> None:
        """Delete models, except those of the newest versions and of the one that decides."""
        deciding = projection.published[-1].version if projection.published else 0
        limit = max(projection.versions) - projection.settings.keep_versions
        old = {number for number in projection.versions if number <= limit and number != deciding}
        kept = {one.model for number, one in projection.versions.items() if number not in old}
        for number in old - self._deleted:
            if projection.versions[number].model not in kept:
                self._store.delete_blob(model_name(self._name, projection.versions[number].model))
        self._deleted = old
