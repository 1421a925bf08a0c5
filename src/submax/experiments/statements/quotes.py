"""Sentences of the paper that statements test, each with its section."""

ABSTRACT = (
    "Abstract: RCPs are slower to converge and have inferior expected rewards at convergence, "
    "compared with classic methods such as the upper confidence bound and Thompson sampling."
)
LARGE = (
    "Section 4.1: the performance of classic methods degrade when K increase, except TS with the "
    "prior equal to the ground truth beta used for initializing the environment."
)
BEST = (
    "Section 4.1: Overall, RCPs with the SubMax strategy yields the best policy across the 3 "
    "settings."
)
SPARSE = (
    "Section 4.1: For each prior, TS with the prior being the same one used to initialize the "
    "environment is also better than others and for Beta(1, 99), ε-greedy strategy show a faster "
    "convergence within 5000 observations."
)
DELAYED = "Section 4.1: It is only outperformed by TS with the largest reward delay."
SLOPE = (
    "Section 4.1: based on the trend (the slope of the accumulated regret curve), RCPs with the "
    "SubMax policy is likely to outperform TS beyond the 5000 observations."
)
OVERALL = (
    "Section 4.1: Overall, RCPs with the SubMax strategy is the most competitive method across all "
    "configurations and often converge faster than classic methods especially when the MAB "
    "settings are difficult."
)
WITHIN = (
    "Section 4.1: Within RCPs, the SubMax strategy outperforms the optimized strategy which again "
    "outperforms the optimistic strategy."
)
IMPROVED = (
    "Introduction: we demonstrate that the proposed technique can outperform the marginalized "
    "policy for RCPs in challenging MAB and contextual MAB settings, being competitive to "
    "classic methods."
)
SUPERIOR = (
    "Abstract: we demonstrate that the proposed technique improves RCPs and makes them competitive "
    "with classic methods, showing superior performance on challenging MABs with large action "
    "spaces and sparse reward signals."
)
