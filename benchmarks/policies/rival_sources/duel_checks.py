"""Rivals for duels, beside other sources."""

from pathlib import Path
from typing import Any

import numpy as np
from rival_sources.history import importing

from submax import (
    Feedback,
    Problem,
    Slots,
    make_policy,
    simulate,
)
from submax.policies import RelativeUCB
from submax.research import Dueling

ARMS, DUELS = 5, 600
PREFERENCES = 0.5 + 0.1 * (np.arange(ARMS)[None] - np.arange(ARMS)[:, None])
"""Arm 0 beats arm 1 with probability 0.6, arm 2 with 0.7, and so on."""
GAMES = 400


def relative_ucb(sources: Path, seed: int) -> str:
    """duelpy: the distribution of the first arm, and the second arms, on the same duels."""
    rng, policy = np.random.default_rng(seed), RelativeUCB(0.6)
    with importing(sources / "duelnlg") as get:
        peer = _peer_of_relative_ucb(get)
    state = policy.init(Problem(Slots((ARMS, ARMS))), 1, rng)
    first_apart, same = 0.0, 0
    for _ in range(DUELS):
        ours = policy.probabilities(state, np.zeros((1, 1, 0)))[0, 0].reshape(ARMS, ARMS)
        upper, shares = _their_first_arm(peer)
        first_apart = max(first_apart, np.abs(ours.sum(axis=1) - shares).max())
        i, j = divmod(int(rng.choice(ARMS**2, p=ours.ravel())), ARMS)
        # It never lets an arm duel itself, and cuts bounds at 1, so that more of them are equal.
        others = np.where(np.arange(ARMS) == i, -1.0, upper[:, i])
        same += bool(i == j or others[j] == others.max())
        won = rng.random() < PREFERENCES[i, j]
        peer.preference_estimate.enter_sample(i, j, won)
        shape = (1, 1)
        feedback = Feedback(
            np.zeros((1, 1, 0)),
            np.array([[[i, j]]]),
            np.full(shape, won * 1.0),
            None,
            np.ones(shape),
        )
        state = policy.update(state, feedback, rng)
    return (
        f"probabilities of first arms differ by at most {first_apart:.0e}; second arms that it "
        f"allows, too: {same} of {DUELS}"
    )


def _peer_of_relative_ucb(get: Any) -> Any:
    class Arms:
        def get_num_arms(self) -> int:
            return ARMS

    module = get("duelnlg.duelpy.algorithms.relative_ucb")
    return module.RelativeUCB(Arms(), exploratory_constant=0.6)


def _their_first_arm(peer: Any) -> tuple[Any, Any]:
    """Return the bounds of duelpy, and the distribution that it draws the first arm from."""
    peer.time_step += 1
    peer._update_confidence_radius()
    upper = peer.preference_estimate.get_upper_estimate_matrix().preferences
    candidates = {arm for arm in range(ARMS) if (np.asarray(upper[arm]) >= 0.5).all()}
    if peer.hypothesized_arm is not None and peer.hypothesized_arm not in candidates:
        peer.hypothesized_arm = None
    if not candidates:
        return np.asarray(upper), np.full(ARMS, 1 / ARMS)
    given: dict[str, Any] = {}

    class Recorder:
        def choice(self, arms: list[int], p: list[float]) -> int:
            given.update(zip(arms, p, strict=True))
            return arms[0]

    peer.random_state = Recorder()
    chosen = peer._select_potential_winner(candidates)
    shares = np.zeros(ARMS)
    for arm, share in (given or {chosen: 1.0}).items():
        shares[arm] = share
    return np.asarray(upper), shares


def double_thompson(sources: Path, seed: int) -> str:
    """Huan's dueling-bandit, in JAX: the regret of whole games, by other random numbers."""
    import jax
    import jax.numpy as jnp

    table = jnp.asarray(PREFERENCES)

    def duel(state: Any, first: Any, second: Any) -> Any:
        key, regret = state
        key, used = jax.random.split(key)
        lost = (table[0, first] + table[0, second] - 1) / 2
        return jax.random.uniform(used) < table[first, second], (key, regret + lost)

    with importing(sources / "dueling-bandit") as get:
        play = get("bandit.algorithms.d_ts").d_ts
        keys = jax.random.split(jax.random.key(seed), (GAMES, 2))
        games = jax.vmap(
            lambda pair: play(pair[0], ARMS, duel, (pair[1], jnp.zeros(())), DUELS, 0.51, False)
        )
        theirs = np.asarray(games(keys)[1][1], dtype=np.float64)
    environment = Dueling(preferences=tuple(map(tuple, PREFERENCES.tolist())))
    policy = make_policy("double-thompson")
    ours = simulate(environment, policy, observations=DUELS, replicas=GAMES, seed=seed).final_regret
    error = np.sqrt(ours.var(ddof=1) / GAMES + theirs.var(ddof=1) / GAMES)
    return (
        f"regret after {DUELS} duels {ours.mean():.1f}, theirs {theirs.mean():.1f}, "
        f"{abs(ours.mean() - theirs.mean()) / error:.1f} standard errors apart"
    )


CHECKS = {"relative-ucb": relative_ucb, "double-thompson": double_thompson}
"""A comparison for each policy."""
