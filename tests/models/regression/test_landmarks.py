import numpy as np
from scipy.cluster.vq import kmeans2, vq

from submax.models.regression.landmarks import STEPS, chosen_landmarks


def test_few_different_points_are_the_landmarks(seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(3, size=(200, 2)).astype(float)
    found = chosen_landmarks(points, 9, rng)
    assert sorted(found.tolist()) == [[a, b] for a in (0.0, 1.0, 2.0) for b in (0.0, 1.0, 2.0)]


def test_landmarks_are_those_of_k_means(seed):
    points = np.random.default_rng(seed).normal(size=(300, 4))
    rng = np.random.default_rng((seed, 1))
    start = points[np.random.default_rng((seed, 1)).permutation(300)][:12]
    expected, _ = kmeans2(points, start, iter=STEPS, minit="matrix")
    np.testing.assert_allclose(chosen_landmarks(points, 12, rng), expected, atol=1e-12)


def test_landmarks_cover_the_points_better_than_points_do(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(1000, 3))
    _, distance = vq(points, chosen_landmarks(points, 50, rng))
    _, otherwise = vq(points, points[:50])
    assert np.mean(distance**2) < 0.9 * np.mean(otherwise**2)


def test_there_may_be_no_landmark(seed):
    rng = np.random.default_rng(seed)
    assert chosen_landmarks(rng.normal(size=(10, 2)), 0, rng).shape == (0, 2)
