"""Learns a policy from a log."""

from collections.abc import Mapping
from typing import Any

from submax.core.checks import whole_number
from submax.core.contracts.policy import Policy
from submax.evaluation.logs.counted import expanded
from submax.evaluation.logs.log import By, Log
from submax.policies import make_policy
from submax.schema.learned import MOST_ROWS, Learned, Origin


def learn(
    log: Log,
    policy: str | Mapping[str, Any] | Policy[Any] = "rcp-adaptive",
    *,
    share: float = 1.0,
    by: By = "time",
    seed: int = 0,
    keep_rows: int = MOST_ROWS,
) -> Learned:
    """Return the policy learned from a log, or from a ``share`` of its rows.

    The share is the first rows (``by="time"``) or random ones (``by="random"``). If the policy
    needs propensities and the log has none, they are estimated; reward-conditioned policies need
    none. The last ``keep_rows`` rows are stored with the learned policy, so that a live bandit
    that starts from the policy continues to learn from these rows. A row that stands for several
    decisions is learned from as often.

    >>> log = Log.read({"action": ["A", "B"] * 50, "reward": [1, 0] * 50})
    >>> learned = learn(log, "rcp-submax")
    >>> learned.probabilities(log.parts[0].context[:1]).round(2).tolist()
    [[1.0, 0.0]]
    """
    whole_number("keep_rows", keep_rows, at_least=0)
    whole_number("seed", seed, at_least=0)
    if isinstance(policy, Mapping):
        # A table may contain a name for reports, which is not a parameter of the policy.
        policy = {key: value for key, value in policy.items() if key != "name"}
    made = policy if isinstance(policy, Policy) else make_policy(policy)
    part = expanded(log if share == 1.0 else log.split(share, by, seed)[0])
    if made.facts.needs_propensities:
        part = part.with_estimated_propensities(seed)
    origin = Origin(
        log=log.fingerprint,
        rows=len(part),
        log_rows=len(log),
        share=share,
        by=by,
        seed=seed,
        estimated_propensities=int(part.estimated.sum()),
    )
    return Learned.of(part.schema, policy, part.parts, origin, keep_rows)
