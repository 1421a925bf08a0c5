"""Look into trained CVAEs: what the paper says about them beside the regret.

    python benchmarks/policies/cvae_probes.py --out docs/results/paper/probes.csv

All networks are trained once, on 10,000 uniform decisions in each of 50 worlds of section 4.2, with
the settings of contextual.toml. The file has one row for each replica:

- *sensitivity*: total variation between π(· | c, 1) and π(· | c, 0), by the way in which the reward
  is injected, and in the truth. The paper's footnote says that concatenation makes it vanish.
- *latent*: how many of the 8 latent units are active, that is, Var_x[E_q(z_j | x)] > 0.01 (Burda et
  al., 2016), by KL weight.
- *redraws*: total variation between the SubMax policies of two independent sets of latent draws, by
  their number. The paper says that 3 to 5 are enough.
- *mechanism*: how far the learned conditioned policies are from the true ones, and what SubMax
  earns of what can be earned beyond random choice, if negatives or positives are left out. The
  paper explains SubMax's success at rare rewards by the number of negatives.
"""

import argparse
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from submax import Contextual, Feedback, Training
from submax.core.arrays import Floats
from submax.core.conditioning import normalized
from submax.estimators import CVAE
from submax.simulation.results import write_csv

REPLICAS, ROWS, CONTEXTS = 50, 10_000, 500
SHIFTS = (0.0, -2.0, -4.0)
REFERENCE = CVAE(
    hidden=64, latent=8, draws=5, kl_weight=1.0,
    training=Training(steps=300, batch=256, learning_rate=1e-3),
)  # fmt: skip
INJECTIONS = ("modulation", "gate", "concatenation", "input-concatenation")
KL_WEIGHTS = (0.0, 0.1, 0.5, 1.0)
DRAWS = (1, 3, 5, 20)
ACTIVE = 0.01
"""The least variance of the posterior mean of an active unit."""
KEPT = {
    "all rows": (1.0, 1.0),
    "a quarter of the negatives": (0.25, 1.0),
    "a quarter of the positives": (1.0, 0.25),
    "as many negatives as positives": (np.nan, 1.0),
}
"""The shares of negatives and positives that are kept; NaN for as many as there are positives."""


class Trained:
    """A CVAE after a uniform log in ``REPLICAS`` worlds, and the true conditioned policies."""

    def __init__(self, shift: float, estimator: CVAE, kept: str = "all rows") -> None:
        environment, rng = Contextual(shift=shift), np.random.default_rng(2024)
        self.estimator, self.problem, self.rng = estimator, environment.problem, rng
        world = environment.reset(REPLICAS, rng)
        context = environment.contexts(world, ROWS, rng)
        action = self.problem.space.uniform((REPLICAS, ROWS), rng)
        reward = environment.reward(world, context, action, rng)
        # What is left out has weight 0.
        rate = reward.mean(axis=1, keepdims=True)
        negatives, positives = KEPT[kept]
        share = np.minimum(rate / (1 - rate), 1) if np.isnan(negatives) else negatives
        stays = rng.random(reward.shape) < np.where(reward > 0, positives, share)
        self.feedback = Feedback(context, action, reward, None, stays.astype(float))
        self.context = environment.contexts(world, CONTEXTS, rng)
        arms = [np.full((REPLICAS, CONTEXTS, 1), arm) for arm in range(environment.arms)]
        means = [environment.mean_reward(world, self.context, arm) for arm in arms]
        self.values = np.stack(means, axis=-1)
        truth = np.stack([1 - self.values, self.values], axis=2)
        self.truth = truth / truth.sum(axis=-1, keepdims=True)
        params = estimator.init(self.problem, REPLICAS, rng)
        self.params = estimator.fit(params, self.feedback, rng)

    def conditioned(self, params: Any = None) -> Floats:
        """Return the learned π(a | c, r): ``[R, n, 2, K]``."""
        belief = self.estimator.belief(self.params if params is None else params, self.context)
        return belief.prob_of_all()

    def redrawn(self, draws: int) -> Floats:
        """Return SubMax with new latent draws."""
        estimator = dataclasses.replace(self.estimator, draws=draws)
        latent, params = estimator.drawn(self.problem, REPLICAS, self.rng), self.params
        encoding = params.reward_encoding
        network = estimator.written(self.problem, params.parameters, encoding, latent)
        return submax(self.conditioned(params._replace(network=network, latent=latent)))

    def active_units(self) -> Floats:
        """Return the number of active latent units: ``[R]``."""
        import equinox as eqx
        import jax

        from submax.models.nn.designs import features
        from submax.models.nn.training import restored

        design = self.estimator.design(self.problem)
        model = restored(design, self.params.parameters)
        context, action, reward, *_ = (part[:, :CONTEXTS] for part in self.feedback[:3])
        encoded = self.params.reward_encoding.encoded(reward)
        arrays, static = eqx.partition(model, eqx.is_array)

        def means(parts: Any, context: Any, action: Any, encoded: Any) -> Any:
            encoder = eqx.combine(parts, static).encoder
            return encoder(features(action, design.sizes), context, encoded)[0]

        of_rows = jax.vmap(jax.vmap(means, in_axes=(None, 0, 0, 0)))
        table = np.asarray(of_rows(arrays, *map(np.float32, (context, action, encoded))))
        active: Floats = (table.var(axis=1) > ACTIVE).sum(axis=-1).astype(float)
        return active


def submax(table: Floats) -> Floats:
    """Return SubMax from conditioned probabilities ``[..., 2, K]``."""
    return normalized(np.maximum(table[..., 1, :] - table[..., 0, :], 0.0))


def variation(one: Floats, other: Floats) -> Floats:
    """Return the total variation, averaged over contexts: ``[R]``."""
    distance: Floats = 0.5 * np.abs(one - other).sum(axis=-1).mean(axis=-1)
    return distance


Found = Iterator[tuple[str, str, Floats]]


def sensitivity(shift: float) -> Found:
    """By injection."""
    for injection in INJECTIONS:
        trained = Trained(shift, dataclasses.replace(REFERENCE, injection=injection))
        table = trained.conditioned()
        yield injection, "TV(π₁, π₀)", variation(table[:, :, 1], table[:, :, 0])
    truth = trained.truth
    yield "the truth", "TV(π₁, π₀)", variation(truth[:, :, 1], truth[:, :, 0])


def latent(shift: float) -> Found:
    """By KL weight."""
    for weight in KL_WEIGHTS:
        trained = Trained(shift, dataclasses.replace(REFERENCE, kl_weight=weight))
        yield f"β = {weight:g}", "active latent units of 8", trained.active_units()


def redraws(shift: float) -> Found:
    """By number of draws."""
    trained = Trained(shift, REFERENCE)
    for draws in DRAWS:
        one, other = trained.redrawn(draws), trained.redrawn(draws)
        yield f"{draws} draws", "TV between two redraws", variation(one, other)
        same = (one.argmax(axis=-1) == other.argmax(axis=-1)).mean(axis=-1)
        yield f"{draws} draws", "same first choice", same


def mechanism(shift: float) -> Found:
    """By the rows that are kept."""
    for kept in KEPT:
        trained = Trained(shift, REFERENCE, kept)
        table = trained.conditioned()
        for level in (0, 1):
            distance = variation(table[:, :, level], trained.truth[:, :, level])
            yield kept, f"TV of the {level}-conditioned policy to the truth", distance
        values, uniform = trained.values, trained.values.mean(axis=(1, 2))
        earned = (submax(table) * values).sum(axis=-1).mean(axis=-1) - uniform
        yield kept, "share earned beyond random", earned / (values.max(-1).mean(-1) - uniform)


PROBES = (sensitivity, latent, redraws, mechanism)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = [
        {"probe": probe.__name__, "shift": shift, "variant": variant, "measure": measure,
         "replica": replica, "value": round(float(value), 6)}
        for probe in PROBES
        for shift in SHIFTS
        for variant, measure, values in probe(shift)
        for replica, value in enumerate(values)
    ]  # fmt: skip
    write_csv(given.out, rows)
