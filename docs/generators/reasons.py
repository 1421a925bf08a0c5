"""Why statements of the paper do not hold in our results, as far as we know."""

REASONS = {
    "UCB1 has less regret than optimistic": (
        "The bonus of UCB1, √(2 ln t / n), does not depend on the scale of the values. With "
        "hundreds of arms, or with values near 0.1 or 0.01, UCB1 still tries all arms about "
        "equally after 5000 observations and is close to random choice. It is ahead of optimistic "
        "where arms are few and values are large."
    ),
    "Thompson with the true prior does not lose, relative to random, from K=10 to 500": (
        "The regret of random choice grows with K too, so regret is taken relative to it. With 500 "
        "arms there are 10 observations for each, so no method can find the best arm early."
    ),
    "Thompson with the true prior is the best classic method (K=100, N_b=100)": (
        "At Beta(1, 99) few rewards are seen at all within 5000 observations. ε-greedy stays with "
        "the first arm that paid and does better than exploring, which is what the second half of "
        "the paper's sentence says."
    ),
    "SubMax is best for N_b=100 and 500 (K=100, Beta(1,9))": (
        "SubMax makes one step of policy improvement per update ([theory](../theory.md), section "
        "1). With N_b = 500 there are only nine updates, and Thompson sampling with the true "
        "prior narrows down faster."
    ),
    "SubMax then adds less regret per decision at the end": (
        "SubMax never returns to an arm that it has dropped unless the others get worse, so some "
        "runs end on a worse arm ([theory](../theory.md), section 4) and keep adding regret, "
        "while Thompson sampling still improves."
    ),
    "SubMax earns more than the best of neural ε-greedy and dropout Thompson": (
        "A value network with coordinate ascent goes to the highest estimated value at once. "
        "SubMax spreads its decisions in proportion to the advantage, and the improvement of a "
        "joint step grows only as the square root of the number of slots "
        "([theory](../theory.md), section 6): choosing slot by slot closes most of the gap. The "
        "paper did not run a classic method here."
    ),
    "With r concatenated to the input, SubMax is no better than random": (
        "Here the network does use the reward. Two differences to the paper may matter: the "
        "reward is one-hot, not a number, and both reward levels share their latent draws, "
        "without which the difference between the levels is mostly noise for every form of "
        "injection."
    ),
}
"""By the text of a statement. A reason is printed if its statement does not hold, or is undecided.
"""
