"""The current settings, choices and versions of a bandit, read from its stream of settings."""

from collections.abc import Callable
from typing import Self

import msgspec

from submax.bandit.guard_rails import Ramp
from submax.bandit.settings import FIXED, Settings
from submax.core.errors import InputError, NotFoundError
from submax.live.log.bandits import settings_stream
from submax.live.log.records import (
    ARCHIVED,
    CHANGED,
    CHOICE,
    DECLARED,
    DELETED,
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
from submax.schema.actions import Change

Reader = Callable[[int], list[Event]]
"""Reads the next events after a position."""


class SettingsProjection:
    """The projection of a bandit's stream of settings: what all its events together say.

    ``settings`` are those that were declared or changed last, ``menu`` has the actions with their
    current status, ``versions`` all fitted versions by number, ``published`` the publications in
    order, ``published_at`` their times, and ``history`` says what the bandit had learned before its
    first decision.
    ``ramps`` are those of choices that were added later, until a version shows that they are over.
    ``deleted`` is true once the bandit is being deleted. ``read_position`` is the position up to
    which the stream was read, ``changed_at`` that of the last change of settings, and
    ``groups_since`` that of the last change of the holdout or the control.
    """

    def __init__(self, declared: Event, read: Reader) -> None:
        self.settings = body_of(declared, Settings)
        self.menu = self.settings.menu
        self.ramps: tuple[Ramp, ...] = ()
        self.versions: dict[int, Fitted] = {}
        self.published: list[Published] = []
        self.published_at: list[float] = []
        self.history: History | None = None
        self.read_position = 0
        self.deleted = False
        self.groups_since = self.changed_at = declared.position
        self._declared_at, self._read = declared.position, read

    @classmethod
    def of(cls, store: Store, name: str) -> Self:
        """The settings, choices and versions of a bandit in a store, read to the end."""
        stream = settings_stream(name)
        declared = store.find(stream, DECLARED)
        if declared is None:
            raise NotFoundError(f"there is no bandit {name!r} in this store: declare its actions")
        projection = cls(declared, lambda after: store.read(stream, after))
        projection.follow()
        projection.check_exists(name)
        return projection

    def check_exists(self, name: str) -> None:
        """Raise a ``NotFoundError`` if the bandit was deleted."""
        if self.deleted:
            raise NotFoundError(
                f"the bandit {name!r} was deleted, so that it answers no more calls: declare a new "
                "one, under this name or another"
            )

    def follow(self) -> bool:
        """Read the events that are new, and return whether there were any."""
        before = self.read_position
        while page := self._read(self.read_position):
            for event in page:
                self._apply(event)
                self.read_position = event.position
        return self.read_position > before

    @property
    def held(self) -> bool:
        """Whether an operator chose the version: then newer versions are not published."""
        return bool(self.published) and self.published[-1].held

    def _apply(self, event: Event) -> None:
        if event.kind == CHANGED:
            self._change_settings(event)
        elif event.kind == CHOICE:
            self._change(body_of(event, Change))
        elif event.kind == VERSION:
            fitted = body_of(event, Fitted)
            self.versions[fitted.version] = fitted
            self._end_ramps(fitted)
        elif event.kind == PUBLISHED:
            self._publish(body_of(event, Published), event.at)
        elif event.kind == HISTORY:
            self.history = body_of(event, History)
        elif event.kind == DELETED:
            # The name may have been declared again after an earlier bandit was deleted.
            self.deleted = self.deleted or event.position > self._declared_at
        elif event.kind not in (DECLARED, ARCHIVED):
            raise InputError(
                f"event {event.position} has the unknown kind {event.kind!r}: "
                "install a newer submax"
            )

    def _change_settings(self, event: Event) -> None:
        before, self.settings = self.settings, body_of(event, Settings)
        self.changed_at = event.position
        if self.settings.groups != before.groups:
            self.groups_since = event.position

    def _end_ramps(self, fitted: Fitted) -> None:
        """Forget the ramps that are over, because a version has learned from enough decisions.

        Otherwise every opening would have to count the decisions of the log again.
        """
        decided = fitted.rows - (0 if self.history is None else self.history.rows)
        ramps = tuple(ramp for ramp in self.ramps if ramp.since + ramp.decisions > decided)
        if len(ramps) < len(self.ramps):
            self.ramps = ramps

    def _publish(self, published: Published, at: float) -> None:
        """Note a publication; see ``Published`` for when an automatic one is ignored."""
        if published.model is not None:
            fitted = self.versions.get(published.version)
            if self.held or fitted is None or fitted.model != published.model:
                return
        self.published.append(published)
        self.published_at.append(at)

    def _change(self, change: Change) -> None:
        """Apply a change; one that another process made first is ignored here."""
        try:
            self.menu = self.menu.changed(change)
        except InputError:
            return
        if change.verb in ("add", "retire"):
            place = self.menu.place(change)
            self.ramps = tuple(ramp for ramp in self.ramps if ramp.place != place)
            if change.ramp:
                self.ramps += (Ramp(place, change.ramp, change.since),)

    def settings_with(self, given: Settings, names: list[str]) -> Settings:
        """The settings with the values of ``names`` taken from ``given``.

        Settings that are fixed once there are decisions must be equal.
        """
        for name in names:
            before, now = getattr(self.settings, name), getattr(given, name)
            if name in FIXED and before != now:
                raise InputError(
                    f"{name} was given as {now}, and this bandit was declared with {before}, which "
                    "cannot change once it decides: leave it out, or open a bandit with another "
                    "name"
                )
        return msgspec.structs.replace(
            self.settings, **{name: getattr(given, name) for name in names}
        )
