"""What a store has acknowledged, written down by somebody else."""

import numpy as np

NEVER, SENT, ACKNOWLEDGED = 0, 1, 2
"""A decision or reward was never sent; it was sent, and may be stored; it was acknowledged."""
KEYS = ("reward", "second")
"""The keys of rewards: a decision has at most one reward under each."""
FIRST_ROOM = 1 << 14


class Journal:
    """Arrays with one place for each decision, and for each of its rewards.

    ``decided`` and ``rewarded`` hold one of the three states above; ``action`` is the number of
    the action in ``actions``.
    """

    def __init__(self):
        self.actions = {}
        self.count = 0
        self._room(FIRST_ROOM)

    def _room(self, room):
        self.decided = _longer(self, "decided", (room,), np.uint8)
        self.action = _longer(self, "action", (room,), np.int16)
        self.propensity = _longer(self, "propensity", (room,), np.float64)
        self.rewarded = _longer(self, "rewarded", (room, len(KEYS)), np.uint8)
        self.value = _longer(self, "value", (room, len(KEYS)), np.float64)

    def new_decisions(self, count):
        """Return the first of some numbers that no decision has."""
        first, self.count = self.count, self.count + count
        if self.count > len(self.decided):
            self._room(2 * len(self.decided))
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


def _longer(journal, name, shape, dtype):
    array = np.zeros(shape, dtype)
    before = getattr(journal, name, array[:0])
    array[: len(before)] = before
    return array
