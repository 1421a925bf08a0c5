"""What the classifier estimator has learned."""

from typing import NamedTuple

from submax.core.arrays import Floats, Integers
from submax.core.contracts.problem import Problem
from submax.core.memory.stored_buffer import StoredBuffer
from submax.core.rewards.reward_encoding import RewardEncoding
from submax.core.running.stored import stored
from submax.models.classifiers.model_cache import ModelCache


@stored("classifier-params")
class ClassifierParams(NamedTuple):
    """The rows kept, what they were counted as, and a fitted classifier for each replica.

    ``counts [R, L, A]`` is the weight of the rows at each reward level with each joint action;
    ``seed [R]`` is what the classifier of each replica was fitted with. The ``models`` follow from
    the other fields.
    """

    problem: Problem
    buffer: StoredBuffer
    reward_encoding: RewardEncoding
    counts: Floats
    seed: Integers
    models: ModelCache
