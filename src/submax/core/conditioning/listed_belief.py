"""A belief that is a table with one column for every joint action."""

from collections.abc import Callable

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.conditioning.belief import Belief
from submax.core.errors import InputError
from submax.core.numerics.categorical import draw
from submax.core.spaces.space import Space


class ListedBelief(Belief):
    """The probabilities of all joint actions, ``listed [R, n, L, M]``, in n contexts.

    ``levels [R, L]`` are the rewards conditioned on, ``level_prior [R, n, L]`` is how often each
    occurs, and ``values [R, L]`` are as in `Belief.values`, or None. If ``listed`` is a function,
    it is called when the probabilities are first needed.
    """

    def __init__(
        self,
        space: Space,
        levels: Floats,
        level_prior: Floats,
        listed: Floats | Callable[[], Floats],
        values: Floats | None = None,
    ) -> None:
        if np.shape(levels) != (level_prior.shape[0], level_prior.shape[-1]):
            raise InputError(
                f"levels has shape {np.shape(levels)} and level_prior {level_prior.shape}, and "
                "they must be [R, L] and [R, n, L]: R replicas, n contexts, L levels"
            )
        self._space = space
        self._levels = levels
        self._level_prior = level_prior
        self._listed = listed if callable(listed) else self._checked(listed)
        self._values = values

    @property
    def space(self) -> Space:
        return self._space

    def levels(self) -> Floats:
        return self._levels

    def level_prior(self) -> Floats:
        return self._level_prior

    def prob_of_all(self) -> Floats:
        if callable(self._listed):
            self._listed = self._checked(self._listed())
        return self._listed

    def _checked(self, listed: Floats) -> Floats:
        expected = (*self._level_prior.shape, self._space.size)
        if np.shape(listed) != expected:
            raise InputError(
                f"listed has shape {np.shape(listed)}, and it must have shape [R, n, L, M] = "
                f"{expected}: R replicas, n contexts, L levels, M joint actions"
            )
        return listed

    def values(self) -> Floats | None:
        return self._values

    def prob(self, action: Actions) -> Floats:
        listed = self.prob_of_all()
        index = self.space.index(action)
        wanted = np.broadcast_to(index, (*listed.shape[:2], index.shape[-1]))[:, :, None]
        return np.take_along_axis(listed, wanted, axis=-1)

    def sample(self, level: int, count: int, rng: np.random.Generator) -> Actions:
        listed = self.prob_of_all()[:, :, level]
        replicas, rows, size = listed.shape
        index = draw(listed.reshape(replicas * rows, 1, size), count, rng)
        return self.space.action(index.reshape(replicas, rows, count))

    def rows(self, row: Integers) -> Belief:
        listed, prior = self.prob_of_all(), self.level_prior()
        return ListedBelief(
            self.space,
            self.levels(),
            np.take_along_axis(prior, row[..., None], axis=1),
            np.take_along_axis(listed, row[..., None, None], axis=1),
            self._values,
        )
