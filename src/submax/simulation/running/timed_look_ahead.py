"""A stepper that looks ahead, whose time is measured."""

import time

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.look_ahead_stepper import LookAheadStepper
from submax.simulation.running.timed_stepper import Clock


class TimedLookAhead(LookAheadStepper):
    """Another stepper that looks ahead, as far as it does; its seconds are added to a clock."""

    def __init__(self, stepper: LookAheadStepper, clock: Clock) -> None:
        self.replay_cost, self.shortest = stepper.replay_cost, stepper.shortest
        super().__init__(stepper.replicas)
        self._stepper = stepper
        self._clock = clock

    @property
    def settled(self) -> bool:
        return self._stepper.settled

    def decide(self, uniform: Floats) -> Integers:
        begin = time.perf_counter()
        index = self._stepper.decide(uniform)
        self._clock.deciding += time.perf_counter() - begin
        return index

    def replay(
        self, index: Integers, reward: Floats, uniform: Floats, replicas: Integers
    ) -> Integers | None:
        begin = time.perf_counter()
        decided = self._stepper.replay(index, reward, uniform, replicas)
        self._clock.deciding += time.perf_counter() - begin
        return decided

    def learn(self, index: Integers, reward: Floats, rng: np.random.Generator) -> None:
        begin = time.perf_counter()
        self._stepper.learn(index, reward, rng)
        self._clock.learning += time.perf_counter() - begin

    def learn_all(self, index: Integers, reward: Floats) -> None:
        begin = time.perf_counter()
        self._stepper.learn_all(index, reward)
        self._clock.learning += time.perf_counter() - begin
