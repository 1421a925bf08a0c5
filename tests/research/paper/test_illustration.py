import numpy as np

from submax.research.paper.illustration import compute
from submax.simulation.experiment import load_named


def test_panels_are_the_paper_equations_on_raw_counts():
    """Every panel recomputed from its neighbours: λ of the optimized policy, and SubMax."""
    panels, _ = compute(load_named("illustration").changed(replicas=1500))
    low, high = panels["rcp-negative"], panels["rcp-positive"]
    assert len(low) == 1500
    assert np.allclose(low.sum(axis=-1), 1)
    difference = np.clip(high - low, 0, None)
    submax = difference / difference.sum(axis=-1, keepdims=True)
    assert np.allclose(panels["rcp-submax"], submax)
    assert np.allclose(panels["rcp-optimistic"], high)
    falling = low > high
    bound = np.where(falling, low / np.where(falling, low - high, 1), np.inf).min(axis=-1)
    optimized = low + bound[:, None] * (high - low)
    assert np.allclose(panels["rcp-optimized"], optimized, atol=1e-12)
    assert np.allclose(panels["random"], 0.1)
