"""What a store has acknowledged, written down by somebody else."""

import numpy as np

NEVER, SENT, ACKNOWLEDGED = 0, 1, 2
"""A decision or reward was never sent; it was sent, and may be stored; it was acknowledged."""
KEYS = ("reward", "second")
"""The keys of rewards: a decision has at most one reward under each."""
FIRST_ROOM = 1 << 14
ROW = np.dtype(
    [
        ("decided", "u1"), ("action", "i2"), ("propensity", "f8"),
        ("rewarded", "u1", len(KEYS)), ("value", "f8", len(KEYS)),
    ]
)  # fmt: skip


class Journal:
    """A row for each decision, with two places for its rewards.

    ``decided`` and ``rewarded`` hold one of the three states above; ``action`` is the number of
    the action in ``actions``.
    """

    def __init__(self):
        self.actions, self.count = {}, 0
        self._keep(np.zeros(FIRST_ROOM, ROW))

    def _keep(self, rows):
        self._rows = rows
        self.decided, self.action, self.propensity, self.rewarded, self.value = (
            rows[name] for name in ROW.names
        )

    def new_decisions(self, count):
        """Return the first of some numbers that no decision has."""
        first, self.count = self.count, self.count + count
        if self.count > len(self.decided):
            self._keep(np.concatenate([self._rows, np.zeros_like(self._rows)]))
        return first

    def send(self, command):
        """A command is about to be sent."""
        if command["do"] == "decide":
            part = self.decided[_numbers(command)]
            part[part == NEVER] = SENT
        for number, key, value in command.get("rewards", ()):
            place = number, KEYS.index(key)
            if self.rewarded[place] == NEVER:
                self.rewarded[place], self.value[place] = SENT, value

    def acknowledge(self, command, answer):
        """A command was answered: what it wrote must be found from now on."""
        if command["do"] == "decide":
            self._acknowledge_decisions(_numbers(command), answer)
        for (number, key, value), status in zip(
            command.get("rewards", ()), answer.get("statuses", ()), strict=True
        ):
            place = number, KEYS.index(key)
            conflicts = self.value[place] != value
            assert (status == "conflict") == conflicts, (number, key, value, status)
            if not conflicts:
                self.rewarded[place] = ACKNOWLEDGED

    def _acknowledge_decisions(self, numbers, answer):
        actions = [self.actions.setdefault(one, len(self.actions)) for one in answer["actions"]]
        known = self.decided[numbers] == ACKNOWLEDGED
        # A decision that is repeated with the same id is the same decision.
        assert (self.action[numbers][known] == np.array(actions)[known]).all()
        assert (self.propensity[numbers][known] == np.array(answer["propensities"])[known]).all()
        self.action[numbers], self.propensity[numbers] = actions, answer["propensities"]
        self.decided[numbers] = ACKNOWLEDGED

    @property
    def events(self):
        """The number of decisions and rewards that were acknowledged."""
        return int((self.decided == ACKNOWLEDGED).sum() + (self.rewarded == ACKNOWLEDGED).sum())


def _numbers(command):
    return slice(command["first"], command["first"] + command["count"])
