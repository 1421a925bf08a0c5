import itertools

import numpy as np
import pytest

from submax.research.paper.claims import illustration_statements
from submax.research.paper.illustration import compute, illustrate
from submax.research.paper.statements import Verdict
from submax.simulation.experiment import load_named


@pytest.fixture(scope="module")
def panels():
    return compute(load_named("illustration").changed(replicas=1500))


def test_panels_are_the_paper_equations_on_raw_counts(panels):
    """Every panel recomputed from its neighbours: λ of the optimized policy, SubMax, the mean."""
    low, high = panels["rcp-negative"].probabilities, panels["rcp-positive"].probabilities
    assert len(low) == 1500
    assert np.allclose(low.sum(axis=-1), 1)
    difference = np.clip(high - low, 0, None)
    submax = difference / difference.sum(axis=-1, keepdims=True)
    assert np.allclose(panels["rcp-submax"].probabilities, submax)
    assert np.allclose(panels["rcp-optimistic"].probabilities, high)
    falling = low > high
    bound = np.where(falling, low / np.where(falling, low - high, 1), np.inf).min(axis=-1)
    optimized = low + bound[:, None] * (high - low)
    assert np.allclose(panels["rcp-optimized"].probabilities, optimized, atol=1e-12)
    assert np.allclose(panels["random"].probabilities, 0.1)
    worlds = panels["random"].values
    assert np.allclose(panels["random"].expected_reward, worlds.mean(axis=-1))


def test_orderings_of_the_paper_hold_on_average(panels):
    order = ["rcp-negative", "random", "rcp-optimistic", "rcp-optimized", "rcp-submax"]
    for lower, higher in itertools.pairwise(order):
        gain = panels[higher].expected_reward - panels[lower].expected_reward
        assert gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(len(gain)), (lower, higher)


def test_statements_about_the_illustration_hold(tmp_path):
    illustrate(load_named("illustration").changed(replicas=300), tmp_path)
    random, order, zeroed = illustration_statements(tmp_path)
    pairs = [(one.left, one.right) for one in (*random.comparisons, *order.comparisons)]
    assert pairs == [
        ("rcp-negative", "random"),
        ("random", "rcp-optimistic"),
        ("random", "rcp-optimized"),
        ("random", "rcp-submax"),
        ("rcp-optimistic", "rcp-optimized"),
        ("rcp-optimized", "rcp-submax"),
    ]
    assert random.verdict is order.verdict is zeroed.verdict is Verdict.HOLDS
    # Two actions are zeroed only if both reach their bound at the same weight.
    assert 1 <= zeroed.comparisons[0].left_mean < 1.2
    assert zeroed.comparisons[0].right_mean > 2


def test_statements_about_policies_that_were_not_run_have_no_verdict(tmp_path):
    own = load_named("illustration").changed(replicas=20, policies=["random", "rcp-submax"])
    illustrate(own, tmp_path)
    random, order, zeroed = illustration_statements(tmp_path)
    assert [(one.left, one.right) for one in random.comparisons] == [("random", "rcp-submax")]
    assert random.counts[Verdict.NOT_RUN] == 3
    assert order.verdict is zeroed.verdict is Verdict.NOT_RUN
