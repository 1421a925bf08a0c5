"""What a running simulation records, and the checks of actions and rewards."""

from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.environment import Environment
from submax.core.contracts.policy import Policy
from submax.core.errors import InputError
from submax.simulation.trace import Recorder, Trace

SINGLES_TOGETHER = 64
"""Single decisions are checked and recorded in blocks of this many: to do so for each of them would
take longer than a fast policy takes to decide."""


class _Single(NamedTuple):
    action: Actions
    reward: Floats
    regret: Floats


class Recording:
    """Records the decisions of a simulation, and refuses actions and rewards that do not fit."""

    def __init__(
        self,
        environment: Environment[Any],
        policy: Policy[Any],
        replicas: int,
        observations: int,
        points: int | None,
    ) -> None:
        self._environment = environment
        self._policy = policy
        self._problem = environment.problem
        self._slots, self._dtype = self._problem.space.slots, self._problem.space.dtype
        self._replicas = replicas
        self._recorder = Recorder(observations, points, replicas, self._problem.space)
        self._singles: list[_Single] = []
        self._latest: Actions | None = None

    @property
    def complete(self) -> bool:
        """Whether every decision so far is checked and recorded."""
        return not self._singles

    def check(self, action: Actions, decisions: int) -> None:
        """Refuse actions of a wrong shape and, if they are several, those outside the space."""
        fits = action.shape == (self._replicas, decisions, self._slots)
        if not fits or action.dtype != self._dtype:
            self._refuse(action, decisions)
        self._latest = action
        if decisions > 1 and not self._problem.space.contains(action):
            self._refuse(action, decisions)

    def add(self, action: Actions, reward: Floats, regret: Floats) -> None:
        """Record a block of decisions; single decisions are recorded together with later ones."""
        if action.shape[1] == 1:
            self._singles.append(_Single(action, reward, regret))
            if len(self._singles) >= SINGLES_TOGETHER:
                self.complete_singles()
            return
        self.complete_singles()
        self._check_reward(reward)
        self._recorder.add(action, reward, regret)

    def add_singles(self, action: Actions, reward: Floats, regret: Floats) -> None:
        """Check and record several single decisions, with rewards that need no check."""
        self.complete_singles()
        self.check(action, action.shape[1])
        self._recorder.add_one_by_one(action, reward, regret)

    def complete_singles(self) -> None:
        """Check and record the single decisions that are not recorded yet."""
        if not self._singles:
            return
        singles, self._singles = self._singles, []
        action = np.concatenate([single.action for single in singles], axis=1)
        if not self._problem.space.contains(action):
            self._refuse(action, 1)
        reward = np.concatenate([single.reward for single in singles], axis=1)
        self._check_reward(reward)
        regret = np.concatenate([single.regret for single in singles], axis=1)
        self._recorder.add_one_by_one(action, reward, regret)

    def explain_error(self) -> None:
        """Raise an InputError if an action or a reward that was not checked yet does not fit."""
        if self._latest is not None and not self._problem.space.contains(self._latest):
            self._refuse(self._latest, self._latest.shape[1])
        self.complete_singles()

    def trace(self) -> Trace:
        """Return the trace of all decisions; refuse expected rewards that are not finite."""
        self.complete_singles()
        trace = self._recorder.trace()
        if not np.isfinite(trace.final_regret).all():
            raise InputError(
                f"{self._environment} gave an expected reward that is not a finite number: let "
                "mean_reward and best_reward of this environment return finite numbers",
                parameter="environment",
            )
        return trace

    def _refuse(self, action: Actions, decisions: int) -> None:
        """Refuse actions outside the space, which would read the arms of another replica."""
        space = self._problem.space
        shape = (self._replicas, decisions, space.slots)
        raise InputError(
            f"the actions of {self._policy} must be {space.dtype.__name__} numbers of shape "
            f"{shape} in {space}, not {action.dtype} numbers of shape {action.shape} from "
            f"{action.min(initial=0)} to {action.max(initial=0)}: correct its act method",
            parameter="policy",
        )

    def _check_reward(self, reward: Floats) -> None:
        """Refuse rewards outside the scale that the environment declares."""
        scale = self._problem.scale
        fits = scale.contains(reward)
        if not fits.all():
            raise InputError(
                f"{self._environment} gave a reward of {reward[~fits][0]}, which its scale {scale} "
                "does not contain: correct the scale in its problem, or the rewards",
                parameter="environment",
            )
