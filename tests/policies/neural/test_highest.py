import numpy as np
import pytest

from submax.policies.neural.highest import highest


def test_the_highest_score_takes_all():
    scores = np.random.default_rng(0).normal(size=(3, 4, 5))
    shares = highest(scores)
    assert np.array_equal(shares.argmax(axis=-1), scores.argmax(axis=-1))
    assert np.array_equal(shares.sum(axis=-1), np.ones((3, 4)))
    assert set(np.unique(shares)) == {0.0, 1.0}


@pytest.mark.parametrize("ties", [1, 2, 3, 7])
def test_equal_scores_share_equally(ties):
    scores = np.append(np.full(ties, 2.0), [1.0, -np.inf])
    assert np.allclose(highest(scores), np.append(np.full(ties, 1 / ties), [0, 0]))


def test_scores_that_differ_in_the_last_bit_are_not_equal():
    assert highest(np.array([1.0, np.nextafter(1.0, 2)])).tolist() == [0.0, 1.0]
