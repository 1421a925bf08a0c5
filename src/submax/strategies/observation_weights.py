"""Beliefs that say how many observations they are worth."""

from abc import ABC, abstractmethod

from submax.core.arrays import Floats


class ObservationWeights(ABC):
    """An optional part of a belief, which the tracking strategy needs.

    An estimator that can say how many observations its probabilities are worth returns a belief
    that also derives from this class.
    """

    @abstractmethod
    def observation_weights(self) -> Floats:
        """Return how many observations π(· | c, l) is worth, smoothing included: ``[R, n, L]``."""

    @abstractmethod
    def observation_weights_by_slot(self) -> list[Floats]:
        """Return the same for the choices of each slot: a list with one ``[R, n, L]`` a slot."""
