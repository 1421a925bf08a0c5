"""The inputs of a classifier: a context and a reward as one row of numbers."""

import numpy as np

from submax.core.arrays import Floats
from submax.core.rewards.reward_encoding import RewardEncoding

ENCODINGS = ("crossed", "one-hot", "value")
"""How a reward is encoded; ``reward_features`` explains them."""


def reward_features(
    context: Floats, reward: Floats, reward_encoding: RewardEncoding, encoding: str
) -> Floats:
    """Return the inputs of a classifier: ``[R, n, D]`` and ``[R, n] -> [R, n, W]``.

    With c the context and e the one-hot vector of the reward level nearest to the reward r, a row
    is (c, e, e ⊗ c) if ``encoding`` is "crossed", (c, e) if it is "one-hot" and (c, r) if it is
    "value".

    >>> reward_encoding = RewardEncoding.fixed((0.0, 1.0), replicas=1)
    >>> context, reward = np.array([[[5.0, 7.0]]]), np.array([[1.0]])
    >>> reward_features(context, reward, reward_encoding, "crossed").tolist()
    [[[5.0, 7.0, 0.0, 1.0, 0.0, 0.0, 5.0, 7.0]]]
    >>> reward_features(context, reward, reward_encoding, "value").tolist()
    [[[5.0, 7.0, 1.0]]]
    """
    if encoding == "value":
        return np.concatenate([context, reward[..., None]], axis=-1)
    level = np.eye(reward_encoding.levels.shape[1])[reward_encoding.nearest(reward)]
    if encoding == "one-hot":
        return np.concatenate([context, level], axis=-1)
    products = [level[..., [place]] * context for place in range(level.shape[-1])]
    return np.concatenate([context, level, *products], axis=-1)
