"""Rivals with regressions, beside other sources."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from rival_sources.history import importing

from submax import Arms, Feedback, Problem, Slots
from submax.policies import HillClimbingThompson, LinearThompson, LinUCB

ARMS, WIDTH, ROWS = 3, 2, 60


def _taught(policy: Any, seed: int) -> tuple[Any, Feedback]:
    """Return the state of a policy after rows with contexts, and these rows."""
    rng, shape = np.random.default_rng(seed), (1, 5 * ROWS)
    context, arm = rng.normal(size=(*shape, WIDTH)), rng.integers(ARMS, size=(*shape, 1))
    reward = (rng.random(shape) < 0.5 + 0.1 * arm[..., 0] * np.tanh(context[..., 0])) * 1.0
    feedback = Feedback(context, arm, reward, None, np.ones(shape))
    state = policy.init(Problem(Arms(ARMS), context_width=WIDTH), 1, rng)
    return policy.update(state, feedback, rng), feedback


def _scaled_peers(make: Any, linear: Any, feedback: Feedback, alpha: float) -> tuple[Any, Any]:
    """Return a regression of MABWiser for each arm, and the posterior that ours has fitted.

    MABWiser has a prior variance and a noise variance of 1. It is given features and rewards in
    the units in which this is so with our fitted variances.
    """
    belief = linear.beliefs[0]
    posterior = belief.posterior(linear.settings(0, 1.0))
    noise = np.sqrt(posterior.prior.noise)
    features = belief.feature_map.rows(feedback.context[0]) * posterior.unit
    peers = []
    for arm in range(ARMS):
        mine = feedback.action[0, :, 0] == arm
        peer = make(None, alpha, 1.0)
        peer.init(features.shape[1])
        peer.fit(features[mine] / noise, (feedback.reward[0, mine] - posterior.centre) / noise)
        peers.append(peer)
    return peers, posterior


def linucb(sources: Path, seed: int) -> str:
    """MABWiser: the upper confidence bounds, with the variances that ours has fitted."""
    policy = LinUCB(alpha=0.8)
    state, feedback = _taught(policy, seed)
    belief, asked = state.linear.beliefs[0], np.random.default_rng(seed).normal(size=(20, WIDTH))
    with importing(sources / "mabwiser") as get:
        make = get("mabwiser.linear")._LinUCB
        peers, posterior = _scaled_peers(make, state.linear, feedback, policy.alpha)
        rows = belief.feature_map.rows(asked) * posterior.unit
        theirs = np.column_stack([peer.predict(rows) for peer in peers])
    apart = np.abs(policy._scores(belief, state.roots[0], asked) - theirs).max()
    return f"bounds differ by at most {apart:.0e} in 20 contexts after {5 * ROWS} rows"


def linear_thompson(sources: Path, seed: int) -> str:
    """MABWiser: mean and covariance of the normal distribution that coefficients are drawn from."""
    state, feedback = _taught(LinearThompson(), seed)
    with importing(sources / "mabwiser") as get:
        peers, posterior = _scaled_peers(get("mabwiser.linear")._LinTS, state, feedback, 1.0)
    mean = max(
        np.abs(ours - peer.beta).max() for ours, peer in zip(posterior.mean, peers, strict=True)
    )
    covariance = max(
        np.abs(ours - peer.A_inv).max() for ours, peer in zip(posterior.inverse, peers, strict=True)
    )
    return f"means differ by at most {mean:.0e}, covariances by at most {covariance:.0e}"


def hill_climbing(sources: Path, seed: int) -> str:
    """The adpredictor of de Oliveira: means and variances of weights of the regression."""
    rng, policy = np.random.default_rng(seed), HillClimbingThompson(draws=1)
    problem = Problem(Slots((2, 3)))
    effects, state = policy._effects(problem), policy.init(problem, 1, rng)
    with _messages(), importing(sources / "adpredictor") as get:
        module = get("adpredictor")
        module.util.pp = str
        active = effects.active(np.zeros((1, 1, 2), dtype=np.int64)).shape[-1]
        config = module.AdPredictorConfig(1.0, 0.5, 0.0, active)
        peer, message = module.AdPredictor(config), module.pb
        for place, variance in enumerate(state.regression.variance[0]):
            weight = message.Gaussian(mean=0.0, variance=variance)
            peer._set_weight(message.Feature(feature=place), weight)
        worst = 0.0
        for _ in range(ROWS):
            action = problem.space.uniform((1, 1), rng)
            reward = rng.integers(2, size=(1, 1)).astype(float)
            places = effects.active(action)[0, 0].tolist()
            peer.train([message.Feature(feature=place) for place in places], bool(reward[0, 0]))
            shape = (1, 1)
            feedback = Feedback(np.zeros((1, 1, 0)), action, reward, None, np.ones(shape))
            state = policy.update(state, feedback, rng)
            for place in range(effects.count):
                weight = peer._get_weight(message.Feature(feature=place))
                ours = state.regression.mean[0, place], state.regression.variance[0, place]
                apart = abs(ours[0] - weight.mean), abs(ours[1] - weight.variance)
                worst = max(worst, *apart)
    return f"means and variances of weights differ by at most {worst:.0e} on {ROWS} rows"


class _Message:
    """A message of a protocol buffer, as far as adpredictor needs one."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def SerializeToString(self) -> str:  # noqa: N802 - the name that is called
        return repr(sorted(self.__dict__.items()))


def _messages() -> Any:
    """Return a context in which the module can be imported that protoc would write."""
    from contextlib import contextmanager

    @contextmanager
    def installed() -> Any:
        package, module = ModuleType("protobufs"), ModuleType("protobufs.adpredictor_pb2")
        module.Gaussian = module.Feature = _Message
        package.adpredictor_pb2 = module
        names = ("google", "google.protobuf", "google.protobuf.json_format")
        added = {"protobufs": package, "protobufs.adpredictor_pb2": module}
        added |= {name: ModuleType(name) for name in names if name not in sys.modules}
        if "google.protobuf.json_format" in added:
            added["google.protobuf.json_format"].MessageToDict = vars
        sys.modules.update(added)
        try:
            yield
        finally:
            for name in added:
                sys.modules.pop(name, None)

    return installed()


CHECKS = {
    "linucb": linucb,
    "linear-thompson": linear_thompson,
    "hill-climbing-thompson": hill_climbing,
}
"""A comparison for each policy."""
