"""The speed of training many networks together, and of decisions with a trained network."""

import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from measuring.claim import Claim, print_table
from measuring.peer_runs import HERE, PeerUnavailableError, run_peer
from submax.core.problem import Feedback, Problem
from submax.core.spaces import Arms, Box, Slots
from submax.estimators.network import CVAE
from submax.models.memory import Buffer
from submax.models.nn.training import train
from submax.models.training import Minibatches, Training
from submax.policies.reward_conditioned import RewardConditioned
from submax.strategies.weighted import SubMax

REPLICAS, ROWS, ROUNDS = 32, 3000, 3
DECISIONS = 2000
FIGURE = HERE.parent / "docs" / "results" / "decision-cost.png"


def measure() -> list[Claim]:
    return [_training(), *_decisions(), _cost_by_actions()]


def _training() -> Claim:
    """Training steps per second, summed over the replicas, against a loop in PyTorch."""
    problem, rng = Problem(Arms(4), 20), np.random.default_rng(0)
    estimator, training = CVAE(hidden=32, latent=8), Training(steps=150, batch=256)
    feedback = _feedback(problem, REPLICAS, ROWS, rng)
    buffer = Buffer.empty(problem, REPLICAS).add(feedback, estimator.memory, rng)
    encoding = problem.scale.reward_encoding(buffer.reward, buffer.weight)
    rows = Minibatches.of(buffer, buffer.action, encoding.encoded(buffer.reward))
    design = estimator.design(problem)
    train(design, training, rows, rng)
    rates: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        train(design, training, rows, rng)
        ours = REPLICAS * training.steps / (time.perf_counter() - begin)
        try:
            answer = json.loads(run_peer("torch").splitlines()[-1])
        except PeerUnavailableError as reason:
            return Claim(f"CVAEs at once against PyTorch ({reason})", "", "4 times", None)
        rates.append((ours, answer["steps_per_second"]))
    lines = [(str(k + 1), f"{a:.0f}", f"{b:.0f}", f"{a / b:.1f}") for k, (a, b) in enumerate(rates)]
    print_table(
        f"Training steps per second, {REPLICAS} CVAEs", ("round", "submax", "torch", "ratio"), lines
    )
    ratio = statistics.median(a / b for a, b in rates)
    what = f"{REPLICAS} CVAEs at once against a PyTorch {answer['version']} loop"
    return Claim(what, f"{ratio:.1f} times", "4 times", ratio >= 4)


def _decisions() -> list[Claim]:
    claims = []
    for what, problem, limit in (
        ("one decision, 4 arms, 20 numbers of context", Problem(Arms(4), 20), 100.0),
        (
            "one decision among 32768 joint actions",
            Problem(Slots((2, 4, 8, 16, 32)), 20),
            500.0,
        ),
        (
            "one real-valued decision, 3 dimensions",
            Problem(Box((0.0,) * 3, (1.0,) * 3), 20),
            1000.0,
        ),
    ):
        micros = _median_microseconds(problem)
        claims.append(Claim(what, f"{micros:.0f} µs", f"{limit:.0f} µs", micros < limit))
    return claims


def _cost_by_actions() -> Claim:
    """The cost of a decision from 10² to 10¹² joint actions, in slots of ten choices."""
    exponents = (2, 3, 4, 6, 8, 10, 12)
    problems = [Problem(Slots((10,) * power), 20) for power in exponents]
    micros = [_median_microseconds(problem, max_enumerated_actions=1) for problem in problems]
    sizes = [problem.space.size for problem in problems]
    rows = [(f"{size:.2g}", f"{cost:.0f}") for size, cost in zip(sizes, micros, strict=True)]
    print_table("Median cost of a decision by rejection, µs", ("joint actions", "µs"), rows)
    _draw(sizes, micros, FIGURE)
    ratio = max(micros) / min(micros)
    return Claim(
        "cost from 10² to 10¹² joint actions, most by least", f"{ratio:.1f}", "2", ratio < 2
    )


def _draw(sizes: list[int], micros: list[float], path: Path) -> None:
    figure = Figure(figsize=(4.5, 3), layout="constrained")
    axes = figure.subplots()
    axes.semilogx(sizes, micros, marker="o")
    axes.set_ylim(0, 1.3 * max(micros))
    axes.set_xlabel("joint actions")
    axes.set_ylabel("one decision, median (µs)")
    axes.set_title("SubMax by rejection, trained CVAE")
    axes.grid(alpha=0.3)
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=150)


def _median_microseconds(problem: Problem, **options: Any) -> float:
    """The median over three networks, whose shares of accepted proposals differ."""
    return statistics.median(_one_network(problem, seed, **options) for seed in range(3))


def _one_network(problem: Problem, seed: int, **options: Any) -> float:
    """Median microseconds of a decision with a network that was trained on useful feedback."""
    rng = np.random.default_rng(seed)
    training = Training(steps=300, batch=256)
    policy = RewardConditioned(CVAE(hidden=32, training=training), SubMax(), **options)
    feedback = _feedback(problem, 1, 2000, rng)
    state = policy.update(policy.init(problem, 1, rng), feedback, rng)
    contexts = rng.normal(size=(DECISIONS, 1, 1, problem.context_width))
    contexts /= np.linalg.norm(contexts, axis=-1, keepdims=True)
    times = []
    for context in contexts:
        begin = time.perf_counter()
        policy.act(state, context, rng)
        times.append(time.perf_counter() - begin)
    return 1e6 * statistics.median(times)


def _feedback(problem: Problem, replicas: int, rows: int, rng: np.random.Generator) -> Feedback:
    """Uniform actions; the lower half of the first slot's choices is rewarded more often."""
    shape = (replicas, rows)
    context = rng.normal(size=(*shape, problem.context_width))
    context /= np.linalg.norm(context, axis=-1, keepdims=True)
    action = problem.space.uniform(shape, rng)
    good = action[..., 0] < (problem.space.choices or (1,))[0] / 2
    reward = (rng.random(shape) < np.where(good, 0.3, 0.1)).astype(float)
    return Feedback(context, action, reward, np.zeros(shape), np.ones(shape))
