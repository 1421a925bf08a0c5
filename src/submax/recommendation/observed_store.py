"""A bandit in a store for which a policy is recommended."""

from dataclasses import replace

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.live.log.bandits import bandit_names
from submax.live.log.ledger import ledger_of
from submax.live.log.snapshot import read_snapshot
from submax.live.open import open_store
from submax.live.serving.live_state import LiveState
from submax.live.store.store import Store
from submax.recommendation.observed import Observed
from submax.recommendation.recommendation import Recommendation
from submax.recommendation.snippets import policy_word, python_of


class ObservedStore(Observed):
    """What a bandit declares, and the decisions and rewards of its log so far.

    The store may be in use by another process. Without a name, the only bandit is read.
    """

    def __init__(self, place: str, name: str | None) -> None:
        store = open_store(place, read_only=True)
        try:
            self._name = _chosen(bandit_names(store), name)
            self._read(store)
        finally:
            store.close()
        # The address of a database may contain a password.
        self._place = "STORE" if "@" in place else place

    def _read(self, store: Store) -> None:
        state = LiveState(store, self._name, None)
        settings = state.settings
        ledger = ledger_of(store, self._name, settings)
        if not read_snapshot(store, self._name, ledger, leads=lambda: False):
            # A snapshot that is damaged may have been read in part.
            ledger = ledger_of(store, self._name, settings)
        ledger.follow()
        self.schema = settings.schema(state.serving.menu)
        tallies = [tally for slot in ledger.tally.choices[:1] for tally in slot]
        rows = sum(tally.rows for tally in tallies)
        self.mean = sum(tally.reward for tally in tallies) / rows if rows else None
        versions = len(state.projection.versions)
        learned = ledger.counts["learned"]
        self.batch = max(1, learned // versions) if versions else settings.refit_rows

    def with_its_code(self, found: Recommendation) -> Recommendation:
        """Return code that lets the policy decide as a shadow before it is promoted."""
        python = (
            "import submax\n\n"
            f"bandit = submax.open({python_of(self._place)}, name={python_of(self._name)})\n"
            f"bandit.set_shadow({python_of(found.policy)})\n"
            "print(bandit.shadow())      # later: how it compares, and then\n"
            "# bandit.promote_shadow()"
        )
        commands = (
            f"submax shadow set {self._place} {self._name} {policy_word(found.policy)}\n"
            f"submax shadow show {self._place} --bandit {self._name}\n"
            f"submax shadow promote {self._place} {self._name}"
        )
        return replace(found, python=python, commands=commands)


def _chosen(names: list[str], name: str | None) -> str:
    """The bandit of this name, or the only one if no name is given."""
    if name is not None:
        one_of("bandit", name, names)
        return name
    if len(names) != 1:
        raise InputError(
            f"no bandit was named, and the store has {len(names)} of them, "
            f"{', '.join(names) or 'none'}: give the name of one, bandit=… or --bandit",
            code="bandit-not-named",
        )
    return names[0]
