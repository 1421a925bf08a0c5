"""The simulated log of ``evaluation.py``, as arrays, the same for us and for the peer."""

import numpy as np

ROWS, ACTIONS = 1_000_000, 10


def arrays() -> dict[str, np.ndarray]:
    """Actions, rewards and propensities ``[n]``; a policy and a reward model ``[n, K]``."""
    rng = np.random.default_rng(2024)
    logging = 0.1 / ACTIONS + 0.9 * rng.dirichlet(np.ones(ACTIONS), ROWS)
    policy = rng.dirichlet(np.ones(ACTIONS), ROWS)
    action = (logging.cumsum(axis=1) < rng.random((ROWS, 1))).sum(axis=1).clip(0, ACTIONS - 1)
    probability = 0.1 + 0.05 * action
    row = np.arange(ROWS)
    return {
        "action": action,
        "reward": (rng.random(ROWS) < probability).astype(np.float64),
        "propensity": logging[row, action],
        "policy": policy,
        "model": np.clip(0.1 + 0.05 * np.arange(ACTIONS) + rng.normal(0, 0.1, policy.shape), 0, 1),
    }
