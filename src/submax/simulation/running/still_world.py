"""A simulated world whose truth stays as it is."""

from submax.core.arrays import Actions, Floats
from submax.simulation.running.simulated_world import Played, SimulatedWorld


class StillWorld(SimulatedWorld):
    """The world of an environment that does not drift: a whole block of decisions is one call.

    If there are no contexts, the best expected reward is computed once for the whole run.
    """

    _best: Floats | None = None

    def contexts(self, count: int) -> Floats:
        if self.context_width == 0:
            return self.no_contexts(count)
        return self.environment.contexts(self.world, count, self.random.context)

    def play(self, context: Floats, action: Actions) -> Played:
        environment = self.environment
        reward, mean = environment.outcome(self.world, context, action, self.random.reward)
        if self.regrets_rewards:
            regret = self._best_reward(context) - mean
        else:
            regret = environment.regret(self.world, context, action)
        self.world = environment.advance(self.world, context.shape[1], self.random.truth)
        return Played(reward, regret)

    def _best_reward(self, context: Floats) -> Floats:
        if self.context_width:
            return self.environment.best_reward(self.world, context)
        if self._best is None:
            self._best = self.environment.best_reward(self.world, self.no_contexts(1)).copy()
        return self._best
