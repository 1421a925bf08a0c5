"""A policy learned from a uniform log of handwritten digits, against the log itself."""

import numpy as np
import pytest

import submax
from submax.evaluation import compare, learn
from submax.research.paper.offline import true_value, uniform_log


def test_what_is_learned_from_a_uniform_log_of_digits_beats_the_log_threefold(seed):
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(seed)
    digits = submax.Classification("sklearn:digits")
    world = digits.reset(1, rng)
    log = uniform_log(digits, world, 4000, rng)
    first, second = log.split(0.5)
    learned = learn(first, "linucb", seed=seed)
    assert true_value(digits, world, learned, rng) > 3 * log.reward.mean()
    found = compare(second, {"learned": learned}, estimators=["snips", "dr"])
    for one in found.estimates[1:]:
        assert one.interval.low > 3 * found.estimates[0].interval.high
        # About 200 rows count; how many of them are mistakes depends on the seed, and may be few.
        assert all("with a reward other than 1 count" in sentence for sentence in one.cautions)
