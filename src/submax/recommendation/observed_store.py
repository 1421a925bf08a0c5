"""A bandit in a store for which a policy is recommended."""

import shlex
from dataclasses import replace

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.live.bandits.open import open_store
from submax.live.log.bandits import bandit_names
from submax.live.log.ledger import Ledger, ledger_of
from submax.live.log.snapshot import read_snapshot
from submax.live.monitoring.rollups.decision_sums import DecisionSums
from submax.live.serving.live_state import LiveState
from submax.live.store.store import Store
from submax.recommendation.observed import Observed
from submax.recommendation.recommendation import Recommendation
from submax.recommendation.snippets import policy_word, python_of
from submax.recommendation.waiting_decisions import waiting_decisions


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
        # The address of a database may contain a password, and the code is shown to others.
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
        self._has_minimum = settings.guard_rails.minimum > 0
        self.mean = _mean_reward(ledger)
        versions = len(state.projection.versions)
        rows = ledger.counts["learned"] // versions if versions else settings.refit_rows
        self.batch = max(1, rows, waiting_decisions(ledger))

    def with_its_code(self, found: Recommendation) -> Recommendation:
        """Return code that lets the policy decide as a shadow before it is promoted.

        A deterministic policy gets its guard rail before, unless the bandit has one.
        """
        rails = None if self._has_minimum else found.settings.get("guard_rails")
        place, name = shlex.quote(self._place), shlex.quote(self._name)
        opened = f"submax.open({python_of(self._place)}, name={python_of(self._name)})"
        python = ["import submax", "", f"bandit = {opened}"]
        commands = []
        if rails:
            python.append(f"bandit.set(guard_rails={python_of(rails)})")
            minimum = f"guard_rails.minimum={rails['minimum']}"
            commands.append(f"submax set {place} {name} {minimum}")
        python += [
            f"bandit.set_shadow({python_of(found.policy)})",
            "print(bandit.shadow())      # later: how it compares, and then",
            "# bandit.promote_shadow()",
        ]
        commands += [
            f"submax shadow set {place} {name} {policy_word(found.policy)}",
            f"submax shadow show {place} --bandit {name}",
            f"submax shadow promote {place} {name}",
        ]
        return replace(found, python="\n".join(python), commands="\n".join(commands))


def _mean_reward(ledger: Ledger) -> float | None:
    """The mean reward of the last 800 days with decisions, without the holdout."""
    days = ledger.rollups.tiers[-1].groups
    sums = DecisionSums.of_table(days.rows[days.rest == 0])
    count = float(sums.matured.sum())
    return float(sums.reward.sum()) / count if count else None


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
