"""Problems, contexts and feedback that the suites run on."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.conditioning import Estimator
from submax.core.errors import InputError
from submax.core.policy import Policy
from submax.core.problem import Feedback, Problem
from submax.core.rewards import Continuous, Counts, Discrete, Scale
from submax.core.spaces import Arms, Slots
from submax.testing.assertions import Rules

PROBLEMS = (
    Problem(Arms(3)),
    Problem(Arms(1)),
    Problem(Slots((2, 3))),
    Problem(Arms(3), context_width=2, action_features=(((0.5,), (2.0,), (-1.0,)),)),
)
SCALED = (
    Problem(Arms(3), scale=Discrete((-1.0, 0.0, 2.0))),
    Problem(Arms(3), context_width=2, scale=Continuous()),
    Problem(Arms(3), scale=Continuous(low=0.0, high=50.0, asked=3)),
    Problem(Slots((2, 3)), scale=Counts()),
)
"""Problems that a class may refuse, when it is made for other rewards."""
BOUNDED = Problem(Arms(3), context_width=2, scale=Continuous(low=0.0, high=50.0, asked=3))
"""The third problem of SCALED for networks: it has the shapes of the second one, so both are
trained by the same compiled program."""
PAIRS = (Problem(Slots((3, 3))), Problem(Slots((1, 1))), Problem(Slots((3, 3)), context_width=2))
"""The problems of a policy that needs pairs of the same arms, instead of PROBLEMS."""
REPLICAS = (1, 4)


def accepted(
    subject: Policy[Any] | Estimator[Any], problems: tuple[Problem, ...]
) -> Iterator[Problem]:
    """Yield the problems that ``subject`` does not refuse by an InputError."""
    for problem in problems:
        rng = np.random.default_rng(0)
        try:
            state = subject.init(problem, 1, rng)
            if isinstance(subject, Policy):
                subject.act(state, np.zeros((1, 1, problem.context_width)), rng)
        except InputError:
            continue
        yield problem


def problems_of(subject: Policy[Any] | Estimator[Any]) -> tuple[Problem, ...]:
    """Return the problems that ``subject`` must not refuse, with a context in the last one."""
    return PAIRS if subject.traits.needs_pairs else PROBLEMS


def cases(subject: Policy[Any] | Estimator[Any]) -> Iterator[tuple[Problem, int]]:
    """Yield the problems to test, each with a number of replicas.

    PROBLEMS come with one replica and with several, and the accepted ones of SCALED with several.
    """
    if subject.traits.trains_models:
        yield from _cases_of_networks(subject)
        return
    yield from itertools.product(problems_of(subject), REPLICAS)
    yield from ((problem, REPLICAS[-1]) for problem in accepted(subject, SCALED))


def _cases_of_networks(subject: Policy[Any] | Estimator[Any]) -> Iterator[tuple[Problem, int]]:
    """Yield fewer cases, since to compile a network for each of them takes most of the time.

    A single replica is tested only on three arms without a context, and these arms only with the
    levels of SCALED, unless they are refused. Of a policy, two scales show how it treats rewards.
    """
    single, several = REPLICAS
    for problem in PROBLEMS[1:]:
        yield problem, several
    scaled: tuple[Problem, ...] = SCALED[:2]
    if isinstance(subject, Estimator):
        scaled = (*scaled, BOUNDED, *SCALED[3:])
    found = tuple(accepted(subject, scaled))
    plain = SCALED[0] if SCALED[0] in found else PROBLEMS[0]
    yield plain, single
    for problem in found:
        if problem != plain:
            yield problem, several


def some_contexts(problem: Problem, replicas: int, rows: int, seed: int) -> Floats:
    """Draw normal contexts: ``[R, n, D]``."""
    rng = np.random.default_rng((seed, 1))
    return rng.normal(size=(replicas, rows, problem.context_width))


def some_feedback(problem: Problem, replicas: int, rows: int, seed: int) -> Feedback:
    """Draw uniform actions with rewards at any level, and propensities as if from anywhere."""
    rng, shape = np.random.default_rng((seed, 2)), (replicas, rows)
    context, action = some_contexts(problem, *shape, seed), problem.space.uniform(shape, rng)
    reward = some_rewards(problem.scale, shape, rng)
    log_prob = np.log(rng.uniform(0.1, 1.0, size=shape))
    if problem.space.reals:
        # Densities, not above the uniform one.
        log_prob -= problem.space.log_measure
    return Feedback(context, action, reward, log_prob, np.ones(shape))


def some_rewards(scale: Scale, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """Draw levels where they are fixed, else numbers that the scale allows, most of them counts."""
    if not scale.moves:
        return rng.choice(fixed_levels(scale), size=shape)
    counts = rng.poisson(2.0, size=shape).astype(np.float64)
    low, high = scale.bounds or (0.0, 1.0)
    candidates = (counts, -counts, low + rng.random(shape) * (high - low))
    return next(one for one in candidates if scale.contains(one).all())


def fixed_levels(scale: Scale) -> Floats:
    """The levels of a scale that does not move: ``[L]``."""
    nothing = np.zeros((1, 0))
    return scale.reward_encoding(nothing, nothing).levels[0]


def low_and_high(scale: Scale) -> tuple[float, float]:
    """A poor and a good reward."""
    low, high = (0.0, 4.0) if scale.moves else fixed_levels(scale)[[0, -1]]
    return float(low), float(high)


def clear_feedback(problem: Problem, replicas: int, rows: int) -> list[Feedback]:
    """Make histories with one good action, with good ones only, and with bad ones only."""
    index = np.tile(np.arange(rows) % problem.space.size, (replicas, 1))
    low, high = low_and_high(problem.scale)
    return [
        Feedback(
            context=np.ones((*index.shape, problem.context_width)),
            action=problem.space.action(index),
            reward=np.where(good, high, low),
            log_prob=np.full(index.shape, -np.log(problem.space.size)),
            weight=np.ones(index.shape),
        )
        for good in (index == 0, index >= 0, index < 0)
    ]


def padded(feedback: Feedback) -> Feedback:
    """Put a row that is not there before every row, full of values that must not be read."""

    def interleaved(values: NDArray[Any], filler: float) -> NDArray[Any]:
        shape = (values.shape[0], 2 * values.shape[1], *values.shape[2:])
        result = np.full(shape, filler, dtype=values.dtype)
        result[:, 1::2] = values
        return result

    parts = zip(feedback[:5], (np.nan, -1, np.nan, -np.inf, 0.0), strict=True)
    columns: Any = (interleaved(np.asarray(part), filler) for part, filler in parts)
    return Feedback(*columns)


def repeated(feedback: Feedback, replicas: int) -> Feedback:
    """Give every replica the feedback of the first."""
    return feedback.mapped(lambda part: part[:1].repeat(replicas, axis=0))


def check_separation(
    rules: Rules,
    problem: Problem,
    feedback: Feedback,
    state: Any,
    learn: Callable[[Any, Feedback, np.random.Generator], Any],
    ask: Callable[[Any], Floats],
    seed: int,
    **tolerance: float,
) -> None:
    """Check that rows of weight 0 and feedback without rows change nothing, and replicas are apart.

    ``learn`` returns the ``state`` after feedback, and ``ask`` what a state says.
    """

    def learned(feedback: Feedback) -> Floats:
        return ask(learn(state, feedback, np.random.default_rng(seed)))

    before, expected = ask(state), learned(feedback)
    weight = feedback.weight.copy()
    weight[0] = 0.0
    silent = learned(feedback._replace(weight=weight))
    apart = "the feedback of one replica must not reach another"
    absent = "rows of weight 0 must change nothing, whatever they hold"
    empty = learned(feedback.rows(slice(0, 0)))
    for rule, found, wanted in (
        (absent, learned(padded(feedback)), expected),
        ("feedback without rows must change nothing", empty, before),
        (apart, silent[1:], expected[1:]),
        ("a replica without feedback must stay as it is", silent[0], before[0]),
    ):
        rules.close(found, wanted, rule, **tolerance)
    if len(expected) > 1 and not problem.space.reals:
        # Replica 0 alone finds nothing good, then each of the first actions in turn.
        index = problem.space.index(feedback.action[0])
        low, high = low_and_high(problem.scale)
        for favourite in range(-1, min(problem.space.size, 3)):
            reward = feedback.reward.copy()
            reward[0] = np.where(index == favourite, high, low)
            changed = learned(feedback._replace(reward=reward))
            rules.close(changed[1:], expected[1:], apart, rtol=1e-12, atol=1e-12)
