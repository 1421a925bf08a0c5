"""Candidates of the methods of the related work, for `tuning.py`.

Each method has one parameter of its own; units, steps and learning rate are drawn as for every
other method.
"""

from typing import Any

CONTEXTUAL_RIVALS: dict[str, tuple[float, float]] = {
    "sample-average-ucb": (0.01, 3.0),
    "sample-average-sampling": (0.01, 3.0),
    "variance-network-ucb": (0.003, 1.0),
    "policy-gradient": (1e-4, 0.3),
    "doubly-robust-gradient": (1e-4, 0.3),
    "actor-critic": (1e-4, 0.3),
    "preference-optimization": (0.05, 5.0),
    "advantage-conditioned": (0.05, 2.0),
    "bayes-submax": (0.01, 0.4),
    "rcp-continual-submax": (1e-4, 1.0),
}
JOINT_RIVALS: dict[str, tuple[float, float]] = {
    "policy-gradient": (1e-4, 0.3),
    "generative-policy-gradient": (1e-4, 0.3),
    "preference-optimization": (0.05, 5.0),
    "slate-cvae": (0.05, 2.0),
    "rcp-autoregressive-submax": (1e-3, 1.0),
    "advantage-conditioned-cvae": (0.05, 2.0),
    "rcp-continual-cvae-submax": (1e-4, 1.0),
}
OWN_OF_RIVALS = {
    "sample-average-ucb": "width",
    "sample-average-sampling": "scale",
    "variance-network-ucb": "width",
    "policy-gradient": "regularization",
    "generative-policy-gradient": "regularization",
    "doubly-robust-gradient": "regularization",
    "actor-critic": "regularization",
    "preference-optimization": "strength",
    "slate-cvae": "kl_weight",
    "advantage-conditioned": "temperature",
    "advantage-conditioned-cvae": "temperature",
    "bayes-submax": "dropout",
    "rcp-autoregressive-submax": "weight_decay",
    "rcp-continual-submax": "prior_weight",
    "rcp-continual-cvae-submax": "prior_weight",
}
LARGEST_DROPOUT = 0.9
"""The second round asks for up to 4.4 times the best dropout of the first; it must be below 1."""


def rival(method: str, sized: dict[str, Any], own: float) -> dict[str, Any]:
    """Return the table of a candidate; ``sized`` has its units and its training."""
    network = {"kind": "cvae" if "cvae" in method else "softmax", **sized}
    conditioned = {"kind": "reward-conditioned", "strategy": "submax"}
    if method.startswith("advantage-conditioned"):
        strategy = {"kind": "tilted", "temperature": own}
        return {
            "kind": "advantage-conditioned",
            "strategy": strategy,
            "estimator": network,
            **sized,
        }
    if method == "bayes-submax":
        kind = {"kind": "bayes-reparameterized", "dropout": min(own, LARGEST_DROPOUT)}
        return {**kind, "strategy": "submax", "estimator": network, **sized}
    if method == "rcp-autoregressive-submax":
        training = {**sized["training"], "weight_decay": own}
        estimator = {"kind": "autoregressive", **sized, "training": training}
        return {**conditioned, "estimator": estimator}
    if method.startswith("rcp-continual"):
        estimator = {"kind": "variational-continual", "prior_weight": own, "estimator": network}
        return {**conditioned, "estimator": estimator}
    return {"kind": method, OWN_OF_RIVALS[method]: own, **sized}
