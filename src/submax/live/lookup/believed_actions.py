"""What the actions of a decision were believed to earn by the version that decided."""

import math
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock, Thread
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.core.errors import InputError, NotFoundError
from submax.core.policy import expected_rewards
from submax.live.log.records import DecisionMade
from submax.live.serving.live_state import LiveState
from submax.schema.actions import LISTED, ChoiceIndices, EncodedAction

SECONDS = 2.0
"""How long a caller waits for a policy; a decision without its belief is better than none."""
MOST_ACTIONS = 50
"""Actions in one answer, those with the highest probabilities."""


class BelievedAction(NamedTuple):
    """An action that could have been taken, its probability, and what it was believed to earn.

    ``probability`` and ``reward`` are None if they are not known.
    """

    action: EncodedAction
    probability: float | None
    reward: float | None
    taken: bool


class BelievedActions:
    """Asks the version that decided, in a thread.

    A policy may take for ever, and a thread cannot be ended: then nothing is known about rewards,
    and no second thread is started.
    """

    def __init__(self, live_state: LiveState) -> None:
        self._live_state = live_state
        self._lock = Lock()
        self._running: Future[Floats | None] | None = None

    def of(self, made: DecisionMade) -> list[BelievedAction]:
        """The actions that could have been taken, the most probable first."""
        size = math.prod(map(len, made.eligible))
        if size > LISTED or len(made.action) != len(made.eligible):
            return [BelievedAction(made.action, made.propensity, None, taken=True)]
        rewards = self._rewards(made)
        probabilities = None if made.probabilities is None else np.array(made.probabilities)
        taken = _number(made.action, made.eligible)
        order = np.arange(size)
        if probabilities is not None:
            order = np.argsort(-probabilities, kind="stable")
        shown = order[:MOST_ACTIONS].tolist()
        if taken not in shown:
            shown[-1] = taken
        return [
            BelievedAction(
                _action(one, made.eligible),
                None if probabilities is None else float(probabilities[one]),
                None if rewards is None or np.isnan(rewards[one]) else float(rewards[one]),
                one == taken,
            )
            for one in shown
        ]

    def _rewards(self, made: DecisionMade) -> Floats | None:
        """What each eligible joint action was believed to earn; None if nobody knows."""
        with self._lock:
            if made.version == 0 or (self._running is not None and not self._running.done()):
                return None
            self._running = found = _started(lambda: self._asked(made))
        try:
            return found.result(SECONDS)
        except Exception:
            return None

    def _asked(self, made: DecisionMade) -> Floats | None:
        if made.version not in self._live_state.projection.versions:
            return None
        try:
            policy, model = self._live_state.loaded(made.version)
        except (InputError, NotFoundError):
            return None
        encoded = self._live_state.settings.context.encode(made.context)[None]
        found = expected_rewards(policy, model.state, model.standardization.apply(encoded)[None])
        if found is None:
            return None
        return _among(found[0, 0], model.active, made.eligible)


def _started(function: Callable[[], Floats | None]) -> "Future[Floats | None]":
    future: Future[Floats | None] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except Exception as error:
            future.set_exception(error)

    Thread(target=run, name="submax-belief", daemon=True).start()
    return future


def _among(values: Floats, known: ChoiceIndices, wanted: ChoiceIndices) -> Floats:
    """The values of other joint actions; NaN for those that the version did not know."""
    cube = values.reshape([len(indices) for indices in known])
    for axis, (own, indices) in enumerate(zip(known, wanted, strict=True)):
        place = {index: number for number, index in enumerate(own)}
        # A column of NaN at the end stands for choices that were added later.
        padding = [(0, int(one == axis)) for one in range(cube.ndim)]
        padded = np.pad(cube, padding, constant_values=np.nan)
        cube = padded.take([place.get(index, len(own)) for index in indices], axis=axis)
    return cube.ravel()


def _number(action: EncodedAction, eligible: ChoiceIndices) -> int:
    """The place of an action among the eligible joint actions."""
    number = 0
    for choice, indices in zip(action, eligible, strict=True):
        number = number * len(indices) + indices.index(int(choice))
    return number


def _action(number: int, eligible: ChoiceIndices) -> EncodedAction:
    """The eligible joint action at a place."""
    action: EncodedAction = []
    for indices in reversed(eligible):
        number, place = divmod(number, len(indices))
        action.insert(0, indices[place])
    return action
