"""Conditioned probabilities by a network whose last posterior is the next prior."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import Positive
from submax.core.errors import InputError
from submax.core.problem import Feedback, Problem
from submax.core.rewards import RewardEncoding
from submax.estimators.network import NetworkEstimator, NetworkParams, Softmax
from submax.models.memory import Buffer, Memory
from submax.models.networks.choices import Parameters
from submax.models.training_settings import ContextScaling, Minibatches, Training

if TYPE_CHECKING:
    from submax.models.nn.training import Trained
    from submax.research.rivals.designs import VariationalDesign

STEPS = Training(steps=300, standardized=True)
"""The default training: a number of steps, because few new rows cannot tell when to stop."""


@dataclass(frozen=True)
class VariationalContinual(NetworkEstimator):
    """Learn π(a | c, r) from new rows alone: the last posterior of the parameters is the prior.

    The parameters θ of the ``estimator``'s network have independent normal distributions. Update t
    maximizes E_q[Σ_i log p(a_i | c_i, r_i, θ)] − κ KL(q ‖ q_{t−1}) over q = q_t, with i the new
    rows and q_0 = N(0, s²); s is ``prior_deviation`` and κ is ``prior_weight``. So the cost of an
    update does not grow with the number of rows before. Decisions use the mean of q. The rows are
    stored to say how often each reward level occurs.

    Reference: Nguyen et al. (2018), equation 3.

    *Departs from the paper:* κ may differ from 1, which is the paper's value, because beside the
    thousands of parameters of a network the rows of a batch are few. There is no coreset.
    Decisions use the mean of q, not draws from it. Contexts are standardized as at the first
    update. Levels that move with the data are refused.
    """

    estimator: NetworkEstimator = field(default_factory=lambda: Softmax(training=STEPS))
    prior_deviation: Positive = 1.0
    prior_weight: Positive = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.estimator, NetworkEstimator):
            raise InputError(
                f"estimator must train a network, and {self.estimator!r:.60} does not: take "
                "Softmax(training=Training(steps=300)) or a CVAE",
                parameter="estimator",
            )
        training = self.estimator.training
        if training.stops_early or training.weight_decay:
            raise InputError(
                f"steps={training.steps!r} and weight_decay={training.weight_decay} were given, "
                "and variational continual learning needs a number of steps and no weight decay, "
                "which would change the prior: give Training(steps=300)",
                parameter="training",
            )

    @property
    def training(self) -> Training:  # type: ignore[override]  # that of the network
        """How the network is trained at each update."""
        return self.estimator.training

    @property
    def memory(self) -> Memory:  # type: ignore[override]  # that of the network
        """Which rows count for the frequencies of reward levels."""
        return self.estimator.memory

    @property
    def hidden(self) -> int:  # type: ignore[override]  # that of the network
        """The number of units of each hidden layer."""
        return self.estimator.hidden

    @property
    def draws(self) -> int:
        return self.estimator.draws

    @property
    def components(self) -> int:
        return self.estimator.components

    @property
    def largest_deviation(self) -> float:
        return self.estimator.largest_deviation

    def drawn(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Floats:
        return self.estimator.drawn(problem, replicas, rng)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> NetworkParams:
        if problem.scale.moves:
            raise InputError(
                f"the levels of {problem.scale} move with the data, and variational continual "
                "learning needs fixed ones, because earlier rows are not learned from again: take "
                "Binary() or Discrete(...), or another estimator"
            )
        return super().init(problem, replicas, rng)

    def design(self, problem: Problem) -> "VariationalDesign":
        from submax.research.rivals.designs import VariationalDesign

        return VariationalDesign(self.estimator.design(problem), self.prior_deviation)

    def scaling(self, params: NetworkParams, buffer: Buffer) -> ContextScaling | None:
        """Return the scaling of the first update, since the parameters were learned for it."""
        new = super().scaling(params, buffer)
        if new is None or params.scaling is None:
            return new
        return new.where(params.buffer.filled == 0, params.scaling)

    def trained(
        self,
        params: NetworkParams,
        buffer: Buffer,
        feedback: Feedback,
        encoding: RewardEncoding,
        scaling: ContextScaling | None,
        rng: np.random.Generator,
    ) -> "Trained":
        """Train on the new rows, with the last posterior as prior."""
        from submax.models.nn.training import train

        problem = params.problem
        new = Buffer.empty(problem, len(feedback.weight)).add(feedback, Memory(), rng)
        action, reward = problem.space.scaled(new.action), encoding.encoded(new.reward)
        rows = Minibatches.of(new, action, reward, scaling)
        start = self._prior(params, new, rng)
        return train(self.design(problem), self.training, rows, rng, start)

    def _prior(self, params: NetworkParams, new: Buffer, rng: np.random.Generator) -> Parameters:
        """Return the parameters to start from, in which the last posterior is the prior."""
        fresh = self._first(params.problem, len(new.filled), rng)
        known = (params.buffer.filled > 0) & bool(params.parameters)
        start = {}
        for name, value in fresh.items():
            place = name.removeprefix("prior_")
            last = params.parameters.get(place, value)
            start[name] = np.where(known.reshape(-1, *[1] * (value.ndim - 1)), last, value)
        share = self.prior_weight / np.maximum(new.weight.sum(axis=1), 1e-300)
        start["prior_share"] = np.where(new.filled > 0, share, 0.0).astype(np.float32)
        return start

    def _first(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Parameters:
        """Return new parameters of all replicas: a random network, and the first prior."""
        import jax

        from submax.models.nn.training import unpacked

        design = self.design(problem)
        seeds = rng.integers(2**32, size=replicas, dtype=np.uint32)
        models: list[Any] = [design.drawn(np.random.default_rng(seed)) for seed in seeds]
        vectors = [np.concatenate([np.ravel(x) for x in jax.tree.leaves(m)]) for m in models]
        return unpacked(design, np.stack(vectors))
