"""Conformance suite of reward scales."""

import numpy as np

from submax.core.arrays import Floats
from submax.core.rewards.reward_encoding import RewardEncoding
from submax.core.rewards.scale import Scale
from submax.testing.rules.examples import some_rewards
from submax.testing.rules.require import require, require_equal_copy, require_instance

REPLICAS, ROWS = 4, 30


def check_scale(scale: Scale, seed: int = 0) -> None:
    """Raise an AssertionError where ``scale`` breaks its contract."""
    require_instance(scale, Scale)
    require_equal_copy(scale)
    require(scale.levels >= 2, scale, "there must be two levels or more")
    rng = np.random.default_rng(seed)
    reward = some_rewards(scale, (REPLICAS, ROWS), rng)
    require(np.all(scale.contains(reward)), scale, "it must contain its own rewards")
    strange = np.array([np.nan, np.inf, -np.inf])
    require(not scale.contains(strange).any(), scale, "it must contain finite numbers alone")
    for rows in (0, 1, ROWS):
        _check_encoding(scale, reward[:, :rows])
    _check_absence(scale, reward, rng)
    for levels in (2, 3, 7):
        asked = scale.with_levels(levels)
        require(
            2 <= asked.levels <= levels, scale, "with_levels must give this many levels, or fewer"
        )
        _check_encoding(asked, reward)


def _check_encoding(scale: Scale, reward: Floats) -> None:
    encoding = _encoding(scale, reward)
    shapes = (encoding.levels.shape[1], encoding.bin_edges.shape[1])
    require(
        shapes == (scale.levels, scale.width),
        scale,
        "an encoding must have its levels and bin edges",
    )
    for places in encoding:
        require(np.all(np.isfinite(places)), scale, "levels and bin edges must be finite")
        require(np.all(np.diff(places, axis=1) >= 0), scale, "levels and bin edges must rise")
    encoded = encoding.encoded(encoding.levels)
    require(np.allclose(encoded.sum(axis=-1), 1), scale, "an encoded reward must sum to one")
    apart = encoding.levels[:, 0] < encoding.levels[:, -1]
    encoded_apart = (encoded[:, 0] != encoded[:, -1]).any(axis=-1)
    require(
        np.array_equal(apart, encoded_apart), scale, "different levels must be encoded differently"
    )
    if scale.moves and reward.shape[1]:
        varied = reward.min(axis=1) < reward.max(axis=1)
        rule = "the first and the last level must differ where two rewards do"
        require(np.array_equal(apart, varied), scale, rule)
        seen = [np.unique(row) for row in encoding.nearest(reward)]
        ends = all({0, scale.levels - 1} <= set(row) for row in np.array(seen, object)[varied])
        require(ends, scale, "the first and the last level must both have been observed")


def _check_absence(scale: Scale, reward: Floats, rng: np.random.Generator) -> None:
    """Rows of weight 0, the order of rows and other replicas must not matter."""
    expected = _encoding(scale, reward)
    absent = np.concatenate([reward, np.full_like(reward, np.nan)], axis=1)
    weight = np.concatenate([np.ones_like(reward), np.zeros_like(reward)], axis=1)
    found = scale.reward_encoding(absent, weight)
    require(_same(found, expected), scale, "rows of weight 0 must change nothing")
    shuffled = _encoding(scale, reward[:, rng.permutation(ROWS)])
    require(_same(shuffled, expected), scale, "the order of rewards must not matter")
    changed = reward.copy()
    changed[0] = changed[0, 0]
    others = RewardEncoding(*(part[1:] for part in _encoding(scale, changed)))
    rule = "the rewards of one replica must not reach another"
    require(_same(others, RewardEncoding(*(part[1:] for part in expected))), scale, rule)


def _encoding(scale: Scale, reward: Floats) -> RewardEncoding:
    return scale.reward_encoding(reward, np.ones_like(reward))


def _same(one: RewardEncoding, other: RewardEncoding) -> bool:
    return np.array_equal(one.levels, other.levels) and np.array_equal(
        one.bin_edges, other.bin_edges
    )
