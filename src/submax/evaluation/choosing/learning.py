"""Learns a policy from a log."""

import warnings
from collections.abc import Sequence

from submax.evaluation.choosing.best_policy import learn_best
from submax.evaluation.choosing.one_policy import Specification, learn_one
from submax.evaluation.choosing.training_length import UnderTrainedWarning, training_warnings
from submax.evaluation.logs.log import By, Log
from submax.schema.learned import MOST_ROWS, Learned


def learn(
    log: Log,
    policy: Specification | Sequence[Specification] | None = None,
    *,
    share: float = 1.0,
    by: By = "time",
    seed: int = 0,
    keep_rows: int = MOST_ROWS,
) -> Learned:
    """Return the policy learned from a log, or from a ``share`` of its rows.

    Without a ``policy`` the best of a small set is learned, and of a list of policies the best;
    ``learn_best`` returns the same with the table of all candidates. ``linucb@greedy`` is the
    variant of a policy that takes its most likely action.

    The share is the first rows (``by="time"``) or random ones (``by="random"``). If the policy
    needs propensities and the log has none, they are estimated; reward-conditioned policies need
    none. The last ``keep_rows`` rows are stored with the learned policy, so that a live bandit
    that starts from the policy continues to learn from these rows. A row that stands for several
    decisions is learned from as often. If a network is trained on too few passes over the rows,
    there is an ``UnderTrainedWarning``.

    >>> log = Log.read({"action": ["A", "B"] * 50, "reward": [1, 0] * 50})
    >>> learned = learn(log, "rcp-submax")
    >>> learned.probabilities(log.parts[0].context[:1]).round(2).tolist()
    [[1.0, 0.0]]
    """
    if policy is None or (isinstance(policy, Sequence) and not isinstance(policy, str)):
        best = learn_best(log, policy, share=share, by=by, seed=seed, keep_rows=keep_rows)
        learned, short = best.learned, best.warnings
    else:
        learned = learn_one(log, policy, share=share, by=by, seed=seed, keep_rows=keep_rows)
        short = training_warnings(learned.policy, learned.origin.rows)
    for sentence in short:
        warnings.warn(sentence, UnderTrainedWarning, stacklevel=2)
    return learned
