"""A bandit of a store, read for a command, and stores opened for changes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from submax.cli.inspection import chosen_bandit, opened_for_reading
from submax.live.bandits.open import open_store
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.bandits import bandit_names
from submax.live.log.ledger import Ledger, ledger_of
from submax.live.log.snapshot import read_snapshot
from submax.live.serving.live_state import LiveState
from submax.live.store.store import Store


class ReadBandit(NamedTuple):
    """A bandit that is only read: its name, its state and its ledger."""

    name: str
    state: LiveState
    ledger: Ledger

    @property
    def projection(self) -> SettingsProjection:
        """The settings, choices and versions."""
        return self.state.projection


@contextmanager
def read_bandit(place: str, name: str | None) -> Iterator[ReadBandit]:
    """Read a bandit, which another process may use; the only one if no name is given."""
    with opened_for_reading(place) as store:
        chosen = chosen_bandit(bandit_names(store), name)
        state = LiveState(store, chosen, None)
        ledger = ledger_of(store, chosen, state.settings)
        if not read_snapshot(store, chosen, ledger, leads=lambda: False):
            # A snapshot that is damaged may have been read in part.
            ledger = ledger_of(store, chosen, state.settings)
        ledger.follow()
        yield ReadBandit(chosen, state, ledger)


@contextmanager
def opened_for_writing(place: str) -> Iterator[Store]:
    """Open a store that exists, so that it can be changed."""
    # Opening a store for writing would create it; a store that does not exist is refused here.
    with opened_for_reading(place):
        pass
    store = open_store(place)
    try:
        yield store
    finally:
        store.close()
