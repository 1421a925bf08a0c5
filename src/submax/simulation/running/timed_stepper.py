"""A stepper whose time is measured."""

import time
from typing import Protocol

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.stepper import Stepper
from submax.core.contracts.success_draws import SuccessDraws


class Clock(Protocol):
    """Where the seconds are added up."""

    deciding: float
    learning: float


class TimedStepper(Stepper):
    """Another stepper; the seconds of its ``act`` and its ``learn`` are added to a clock.

    If it takes many decisions in a way of its own, they cannot be told apart, and all of them count
    as deciding.
    """

    def __init__(self, stepper: Stepper, clock: Clock) -> None:
        self._stepper = stepper
        self._clock = clock

    def act(self, rng: np.random.Generator) -> Integers:
        begin = time.perf_counter()
        index = self._stepper.act(rng)
        self._clock.deciding += time.perf_counter() - begin
        return index

    def learn(self, index: Integers, reward: Floats, rng: np.random.Generator) -> None:
        begin = time.perf_counter()
        self._stepper.learn(index, reward, rng)
        self._clock.learning += time.perf_counter() - begin

    def take(self, draws: SuccessDraws, rng: np.random.Generator) -> tuple[Integers, Floats]:
        if type(self._stepper).take is Stepper.take:
            return super().take(draws, rng)
        begin = time.perf_counter()
        taken = self._stepper.take(draws, rng)
        self._clock.deciding += time.perf_counter() - begin
        return taken
