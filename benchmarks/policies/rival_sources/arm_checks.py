"""Rivals with plain arms beside other sources: indices, preferences, posteriors, information."""

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
from rival_sources.history import ARMS, ROWS, importing, ours_by_row, rows, states

from submax import Memory, make_policy
from submax.policies import EXP3IX, EpsilonGreedy, Gradient, Thompson
from submax.research.rivals.bayesian_arms import least_information_ratio, regret_and_information

DISCOUNT, WINDOW = 0.97, 50


def imed(sources: Path, seed: int) -> str:
    """rlberry: the largest index, whose divergence is found by maximizing its dual."""
    with importing(sources / "rlberry-research" / "rlberry_research" / "agents" / "bandits") as get:
        index, _ = get("indices").makeBoundedIMEDIndex()
    ours, same = ours_by_row(make_policy("imed"), seed), 0
    arms, rewards = rows(seed)
    for row in range(ARMS - 1, ROWS):
        earned = [rewards[: row + 1][arms[: row + 1] == arm] for arm in range(ARMS)]
        tracker = SimpleNamespace(
            arms=range(ARMS),
            n_arms=ARMS,
            mu_hat=lambda arm, earned=earned: earned[arm].mean(),
            rewards=lambda arm, earned=earned: earned[arm],
        )
        with np.errstate(all="ignore"):
            theirs = index(tracker)
        same += bool(ours[row, int(np.argmax(theirs))] > 0)
    return f"the same arm after {same} of {ROWS - ARMS + 1} rows"


def epsilon_greedy(sources: Path, seed: int) -> str:
    """MABWiser: the arms with the highest expectation."""
    with importing(sources / "mabwiser") as get:
        mab = get("mabwiser.mab")
        peer = mab.MAB(list(range(ARMS)), mab.LearningPolicy.EpsilonGreedy(epsilon=0.0))
        ours, same = ours_by_row(EpsilonGreedy(0.2), seed), 0
        for row, (arm, reward) in enumerate(zip(*rows(seed), strict=True)):
            peer.partial_fit(np.array([arm]), np.array([reward]))
            if row >= ARMS - 1:
                means = np.array(list(peer.predict_expectations().values()))
                best = means == means.max()
                expected = 0.2 / ARMS + 0.8 * best / best.sum()
                same += bool(np.allclose(ours[row], expected))
    return f"the same probabilities after {same} of {ROWS - ARMS + 1} rows"


def gradient(sources: Path, seed: int) -> str:
    """Zhang et al., code for the book of Sutton and Barto: probabilities of all arms."""
    with importing(sources / "reinforcement-learning-an-introduction" / "chapter02") as get:
        bandit = get("ten_armed_testbed").Bandit
    peer = bandit(ARMS, step_size=0.4, gradient=True, gradient_baseline=True)
    peer.reset()
    ours, worst = ours_by_row(Gradient(0.4), seed), 0.0
    # It draws rewards itself: without noise they are the true ones, which are set for each row.
    with patch.object(np.random, "randn", lambda *size: 0.0):
        for row, (arm, reward) in enumerate(zip(*rows(seed), strict=True)):
            peer.act()
            if row:
                worst = max(worst, np.abs(peer.action_prob - ours[row - 1]).max())
            peer.q_true[arm] = reward
            peer.step(arm)
    return f"probabilities differ by at most {worst:.0e}"


def exp3_ix(sources: Path, seed: int) -> str:
    """Clarté: estimated losses, from which probabilities follow by the paper's rate."""
    with importing(sources / "onlinelearning" / "code") as get:
        peer = get("exp3").Exp3IX(np.full(ARMS, 1 / ARMS), 1.0, 0.0)
    ours, losses, worst = ours_by_row(EXP3IX(), seed), np.zeros(ARMS), 0.0
    for row, (arm, reward) in enumerate(zip(*rows(seed), strict=True)):
        rate, later = (np.sqrt(2 * np.log(ARMS) / (ARMS * (row + more))) for more in (1, 2))
        peer.p = ours[row - 1] if row else np.full(ARMS, 1 / ARMS)
        peer.gamma, peer.last_action = rate / 2, arm
        peer.update(1 - reward)
        losses += peer.update_loss
        mass = np.exp(-later * (losses - losses.min()))
        worst = max(worst, np.abs(mass / mass.sum() - ours[row]).max())
    return f"probabilities differ by at most {worst:.0e}"


def _parameters(policy: Any, state: Any) -> Any:
    return policy.alpha + state.rewards[0], policy.beta + state.pulls[0] - state.rewards[0]


def discounted_thompson(sources: Path, seed: int) -> str:
    """SMPyBandits: its posterior, discounted once for each row of another arm."""
    with importing(sources / "SMPyBandits" / "SMPyBandits" / "Policies" / "Posterior") as get:
        peers = [get("DiscountedBeta").DiscountedBeta(gamma=DISCOUNT) for _ in range(ARMS)]
    policy, worst = Thompson(memory=Memory(discount=DISCOUNT)), 0.0
    for state, arm, reward in zip(states(policy, seed), *rows(seed), strict=True):
        for other, peer in enumerate(peers):
            if other == arm:
                peer.update(reward)
            else:
                peer.discount()
        theirs = np.array([[1 + peer.N[1], 1 + peer.N[0]] for peer in peers]).T
        worst = max(worst, np.abs(np.array(_parameters(policy, state)) - theirs).max())
    return f"parameters of posteriors differ by at most {worst:.0e}"


def sliding_window_thompson(sources: Path, seed: int) -> str:
    """SMPyBandits: its posterior, made again from the rows of the window."""
    with importing(sources / "SMPyBandits" / "SMPyBandits" / "Policies" / "Posterior") as get:
        make = get("Beta").Beta
    policy, worst = Thompson(memory=Memory(window=WINDOW)), 0.0
    arms, rewards = rows(seed)
    for row, state in enumerate(states(policy, seed)):
        peers = [make() for _ in range(ARMS)]
        for arm, reward in list(zip(arms, rewards, strict=True))[: row + 1][-WINDOW:]:
            peers[arm].update(reward)
        theirs = np.array([[peer.N[1], peer.N[0]] for peer in peers]).T
        worst = max(worst, np.abs(np.array(_parameters(policy, state)) - theirs).max())
    return f"parameters of posteriors differ by at most {worst:.0e}"


def information_directed(sources: Path, seed: int) -> str:
    """Baudry et al.: regret and information by the same draws, and the ratio on a grid."""
    rng, worst, ratio = np.random.default_rng(seed), 0.0, 0.0
    with importing(sources / "Information_Directed_Sampling") as get:
        peer = get("BernoulliMAB").BetaBernoulliMAB(np.full(ARMS, 0.5) + np.arange(ARMS) / 10)
        peer.threshold, peer.store_IDS = 2.0, True
        found: dict[str, Any] = {}
        peer.IDSAction = lambda delta, gain: found.update(delta=delta) or 0
        grid = type(peer).IDSAction
        for _ in range(50):
            drawn = rng.beta(*rng.uniform(1, 9, size=(2, ARMS)), size=(500, ARMS))
            delta, information = regret_and_information(drawn)
            with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                # It takes the mean of no draws for an arm that was never the best.
                peer.computeIDS(np.zeros((ARMS, ARMS)), np.zeros(ARMS), drawn.T.copy(), 500)
            worst = max(worst, np.abs(found["delta"] - delta).max())
            peer.IDS_results = {key: [] for key in ("arms", "policy", "delta", "g", "IR")}
            grid(peer, delta, information)
            theirs, ours = (
                peer.IDS_results["policy"][0],
                least_information_ratio(delta, information),
            )
            least = (ours @ delta) ** 2 / (ours @ information)
            ratio = max(ratio, least / ((theirs @ delta) ** 2 / (theirs @ information)) - 1)
    return f"regrets differ by at most {worst:.0e}; ratio above theirs by at most {ratio:.0e}"


def uniform(sources: Path, seed: int) -> str:
    """The closed form: every arm has probability 1 / K."""
    found = ours_by_row(make_policy("random"), seed)
    return f"probabilities differ from 1 / K by at most {np.abs(found - 1 / ARMS).max():.0e}"


CHECKS = {
    "imed": imed,
    "epsilon-greedy": epsilon_greedy,
    "gradient": gradient,
    "random": uniform,
    "exp3-ix": exp3_ix,
    "discounted-thompson": discounted_thompson,
    "sliding-window-thompson": sliding_window_thompson,
    "information-directed": information_directed,
}
"""A comparison for each policy."""
