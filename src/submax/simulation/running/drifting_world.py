"""A simulated world whose truth changes with every decision."""

import copy

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.simulation.running.simulated_world import Played, SimulatedWorld


class DriftingWorld(SimulatedWorld):
    """The world of an environment that drifts: it moves on after every single decision.

    All random numbers are drawn decision by decision, so that the same seed gives the same truth
    and the same contexts for every policy and every delay.
    """

    def contexts(self, count: int) -> Floats:
        if self.context_width == 0:
            return self.no_contexts(count)
        if count == 1:
            return self.environment.contexts(self.world, 1, self.random.context)
        # The contexts are needed before the actions. So the world is moved on twice: here with a
        # copy of its random stream, and again when the actions are known.
        world, truth = self.world, copy.deepcopy(self.random.truth)
        drawn = []
        for _ in range(count):
            drawn.append(self.environment.contexts(world, 1, self.random.context))
            world = self.environment.advance(world, 1, truth)
        return np.concatenate(drawn, axis=1)

    def play(self, context: Floats, action: Actions) -> Played:
        played = [
            self._play_one(context[:, place : place + 1], action[:, place : place + 1])
            for place in range(action.shape[1])
        ]
        if len(played) == 1:
            return played[0]
        reward, regret = (np.concatenate(part, axis=1) for part in zip(*played, strict=True))
        return Played(reward, regret)

    def _play_one(self, context: Floats, action: Actions) -> Played:
        environment = self.environment
        reward, mean = environment.outcome(self.world, context, action, self.random.reward)
        if self.regrets_rewards:
            regret = environment.best_reward(self.world, context) - mean
        else:
            regret = environment.regret(self.world, context, action)
        self.world = environment.advance(self.world, 1, self.random.truth)
        return Played(reward, regret)
