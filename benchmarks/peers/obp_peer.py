"""Open Bandit Pipeline: its estimators and their bootstrap intervals on the arrays of logged.py."""

import json
import time
from importlib import metadata

import numpy as np
from logged import ACTIONS, ROWS, arrays
from obp.ope import (
    DirectMethod,
    DoublyRobust,
    DoublyRobustWithShrinkage,
    InverseProbabilityWeighting,
    OffPolicyEvaluation,
    ReplayMethod,
    SelfNormalizedInverseProbabilityWeighting,
    SwitchDoublyRobust,
)


def main() -> None:
    """Print the estimates, and the seconds with the peer's default of 100 resamples."""
    log = arrays()
    feedback = {
        "n_rounds": ROWS,
        "n_actions": ACTIONS,
        "action": log["action"],
        "reward": log["reward"],
        "pscore": log["propensity"],
        "position": np.zeros(ROWS, dtype=int),
    }
    estimators = [
        ReplayMethod(),
        InverseProbabilityWeighting(),
        SelfNormalizedInverseProbabilityWeighting(),
        DirectMethod(),
        DoublyRobust(),
        SwitchDoublyRobust(tau=50.0),
        DoublyRobustWithShrinkage(lambda_=100.0),
    ]
    evaluation = OffPolicyEvaluation(bandit_feedback=feedback, ope_estimators=estimators)
    policy, model = log["policy"][:, :, None], log["model"][:, :, None]
    begin = time.perf_counter()
    values = evaluation.estimate_policy_values(
        action_dist=policy, estimated_rewards_by_reg_model=model
    )
    evaluation.estimate_intervals(
        action_dist=policy, estimated_rewards_by_reg_model=model, random_state=0
    )
    seconds = time.perf_counter() - begin
    version = metadata.version("obp")
    print(json.dumps({"version": version, "seconds": seconds, "values": values}))


if __name__ == "__main__":
    main()
