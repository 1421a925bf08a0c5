"""The small set of policies among which learning from a log chooses by default."""

from importlib.util import find_spec

import numpy as np

from submax.core.errors import InputError
from submax.evaluation.logs.log import Log
from submax.policies import make_policy

DEFAULT = "rcp-adaptive"
"""The policy that is learned if a log has too few rows for a choice."""
WITHOUT_CONTEXT = (DEFAULT, f"{DEFAULT}@greedy", "rcp-submax")
WITH_CONTEXT = (DEFAULT, f"{DEFAULT}@greedy")
NETWORK = ("rcp-softmax-converged", "rcp-softmax-converged@greedy")
TREES = ("boosted-greedy", "forest-greedy", "trees-greedy")
MOST_ACTIONS_OF_TREES = 200
"""Up to this many joint actions, each has trees of its own: more would take long to fit."""


def standard_candidates(log: Log) -> tuple[str, ...]:
    """Return the names of the policies that suit a log and whose libraries are installed.

    With a context these are the default and its greedy variant, a softmax network that is trained
    to convergence with its greedy variant (needs JAX), and the highest predicted reward of boosted
    trees, of random trees and of both (needs scikit-learn).
    """
    if not log.schema.context.width:
        found = WITHOUT_CONTEXT
    else:
        network = all(find_spec(one) for one in ("jax", "equinox", "optax"))
        few = log.problem.space.size <= MOST_ACTIONS_OF_TREES
        trees = few and find_spec("sklearn") is not None
        found = WITH_CONTEXT + NETWORK * network + TREES * trees
    return tuple(name for name in found if _suits(name.partition("@")[0], log, "@" in name))


def _suits(policy: str, log: Log, is_variant: bool) -> bool:
    problem = log.problem
    try:
        make_policy(policy).init(problem, 1, np.random.default_rng(0))
        if is_variant:
            problem.space.check_listable("a variant of a policy")
    except InputError:
        return False
    return True
