"""Base class of policies that identify the best arm."""

from abc import abstractmethod
from typing import Any

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.contracts.facts import Facts
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.policy import State


class BestArmPolicy(ListingPolicy[State]):
    """A policy that recommends an arm, and may know when it is certain enough to stop."""

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False)

    @abstractmethod
    def recommend(self, state: Any) -> Integers:
        """Return the arm that is believed to be the best in each replica, ``[R]``."""

    @abstractmethod
    def stopped(self, state: Any) -> Booleans:
        """Return in which replicas the policy is certain enough of its recommendation, ``[R]``."""

    def even(self, chosen: Booleans) -> Floats:
        """Return equal probabilities for the chosen arms, ``[R, A] -> [R, 1, A]``."""
        listed: Floats = chosen / chosen.sum(axis=-1, keepdims=True)
        return listed[:, None]
