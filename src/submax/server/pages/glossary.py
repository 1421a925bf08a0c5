"""What the words on the pages mean; `docs/reference/glossary.md` has the same sentences."""

TERMS = {
    "arm": "An action from a plain list, without slots.",
    "baseline action": "The action that decisions of the holdout get.",
    "burn-in": "A guard rail: the first decisions of a bandit are uniform.",
    "context": "The numbers and categories that are known before a decision.",
    "control": "A guard rail: an action that always gets a fixed share of the decisions.",
    "effective sample size": (
        "How many decisions with equal propensities would tell as much: (Σ w)² / Σ w² with w = 1 "
        "/ propensity."
    ),
    "held out": "A decision of the holdout gets the baseline action and is not learned from.",
    "holdout": (
        "A guard rail: a share of the decisions that always get the baseline action and are not "
        "learned from."
    ),
    "late reward": (
        "A reward that arrived after the reward wait. It is stored and not learned from."
    ),
    "lift": (
        "How much more a decision of the bandit earns than one of the holdout or of the control, "
        "with an interval that is valid at every look."
    ),
    "minimum": "A guard rail: the least probability of every eligible action.",
    "policy": "What decides: hyper-parameters, and pure functions between states.",
    "probability now": "The probability of the next decision, a mean over recent contexts.",
    "propensity": "The probability with which a logged action was chosen.",
    "quarantine": (
        "How long a reward waits if its decision is not known yet. If too many wait, the oldest "
        "are dropped."
    ),
    "reward rate": (
        "The mean reward of the decisions that were learned from, weighted by 1 / propensity, so "
        "an arm is not judged by when or to whom it was shown."
    ),
    "reward wait": "How long a decision waits for its reward before it matures.",
    "sample ratio": (
        "The share of decisions, or of units, that are in a group. If it is not the share that "
        "was declared, decisions of one group are lost."
    ),
    "segment": "All decisions whose context has the same values of one or two fields.",
    "share": "Of an arm: the part of all decisions that got it.",
    "standard error": "The typical distance of an estimate from the truth, by chance alone.",
    "unit": "The visitor, customer or device for which decisions are made.",
    "version": "A fitted policy of a live bandit, with a number and a hash.",
}
"""The words by which the templates' macro ``term`` explains itself."""
