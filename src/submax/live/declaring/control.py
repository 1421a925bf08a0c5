"""The settings of a bandit as they stand, its choices and its versions."""

import msgspec

from submax.core.errors import InputError, NotFoundError
from submax.live.declaring.settings import FIXED, Settings
from submax.live.log.bandits import settings_stream
from submax.live.log.ledger import Reader
from submax.live.log.records import (
    CHANGED,
    CHOICE,
    DECLARED,
    HISTORY,
    PUBLISHED,
    VERSION,
    Fitted,
    History,
    Published,
    body_of,
)
from submax.live.store.event import Event
from submax.live.store.store import Store
from submax.schema.choices import Change


def control_of(store: Store, name: str) -> "Control":
    """The settings of a bandit in a store."""
    stream = settings_stream(name)
    declared = store.find(stream, "declared")
    if declared is None:
        raise NotFoundError(f"there is no bandit {name!r} in this store: declare its actions")
    control = Control(declared, lambda after: store.read(stream, after))
    control.follow()
    return control


class Control:
    """A fold over the stream of settings."""

    def __init__(self, declared: Event, read: Reader) -> None:
        self.settings = body_of(declared, Settings)
        self.menu = self.settings.menu
        self.versions: dict[int, Fitted] = {}
        self.published: list[Published] = []
        self.history: History | None = None
        self.heard = 0
        self._read = read

    def follow(self) -> bool:
        """Read what is new; whether there was anything."""
        before = self.heard
        while page := self._read(self.heard):
            for event in page:
                self._apply(event)
                self.heard = event.position
        return self.heard > before

    @property
    def held(self) -> bool:
        """Whether a person chose the version, so that new ones are not published by themselves."""
        return bool(self.published) and self.published[-1].held

    def _apply(self, event: Event) -> None:
        if event.kind == CHANGED:
            self.settings = body_of(event, Settings)
        elif event.kind == CHOICE:
            self._change(body_of(event, Change))
        elif event.kind == VERSION:
            fitted = body_of(event, Fitted)
            self.versions[fitted.version] = fitted
        elif event.kind == PUBLISHED:
            self._publish(body_of(event, Published))
        elif event.kind == HISTORY:
            self.history = body_of(event, History)
        elif event.kind != DECLARED:
            raise InputError(
                f"event {event.position} has the unknown kind {event.kind!r}: "
                "install a newer submax"
            )

    def _publish(self, published: Published) -> None:
        if published.model is not None:
            fitted = self.versions.get(published.version)
            if self.held or fitted is None or fitted.model != published.model:
                return
        self.published.append(published)

    def _change(self, change: Change) -> None:
        """Processes that change the same choice at the same moment both wrote it down."""
        try:
            self.menu = self.menu.changed(change)
        except InputError:
            return

    def settings_with(self, given: Settings, names: list[str]) -> Settings:
        """The settings as they stand, but those that were given anew; what is fixed must agree."""
        for name in names:
            before, now = getattr(self.settings, name), getattr(given, name)
            if name in FIXED and before != now:
                raise InputError(
                    f"this bandit was declared with another {name}, {before}, and that cannot "
                    "change once it decides: leave it out, or open a bandit with another name"
                )
        return msgspec.structs.replace(
            self.settings, **{name: getattr(given, name) for name in names}
        )
