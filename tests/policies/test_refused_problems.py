"""What a policy is not made for is refused before any decision, and before memory is taken."""

import numpy as np
import pytest
from refusals import raises_code

from submax import (
    Arms,
    Box,
    Continuous,
    Counts,
    Memory,
    Mixed,
    Problem,
    Slots,
    TabularBelief,
    make_policy,
)
from submax.estimators import CVAE, BayesianFeatures, Counting
from submax.policies import (
    EXP3,
    IMED,
    KLUCB,
    MOSS,
    BayesUCB,
    CascadeUCB,
    ClimbingDropoutThompson,
    ClimbingEpsilonGreedy,
    EpsilonGreedy,
    FittedThompson,
    FourierThompson,
    GreedyRegression,
    HillClimbingThompson,
    LinUCB,
    PolicyGradient,
    PosteriorSlots,
    PosteriorSubMax,
    RewardConditioned,
    SlateCVAE,
    SlotBySlot,
)
from submax.strategies import Iterated, Optimized, Target, Tracking
from submax.testing.problems import some_feedback

NUMBERS = Problem(Box((0.0,), (1.0,)))
UNBOUNDED = Problem(Arms(2), scale=Continuous())
TRILLION = Problem(Slots((100,) * 6))
ADAPTIVE = RewardConditioned(Counting("fitted"), Tracking())
CASES = [
    # Actions that are numbers.
    *(
        (policy, NUMBERS)
        for policy in (
            ADAPTIVE,
            ClimbingDropoutThompson(),
            ClimbingEpsilonGreedy(),
            PolicyGradient(),
            PosteriorSlots(),
            SlateCVAE(),
            SlotBySlot(CVAE()),
        )
    ),
    (HillClimbingThompson(), Problem(Mixed((2,), (0.0,), (1.0,)))),
    # Rewards without bounds, or of another kind.
    *((policy, UNBOUNDED) for policy in (KLUCB(), BayesUCB(), MOSS(), IMED(), FittedThompson())),
    (FittedThompson(), Problem(Arms(2), scale=Counts())),
    (HillClimbingThompson(), UNBOUNDED),
    (CascadeUCB(), Problem(Slots((3, 3)), scale=Continuous())),
    (RewardConditioned(Counting(), Target((0.2, 0.3, 0.5))), Problem(Arms(2))),
    # Actions that are not pairs.
    (make_policy("relative-ucb"), Problem(Arms(3))),
    (make_policy("double-thompson"), Problem(Slots((2, 3)))),
    # A strategy that reads the values of joint actions.
    (SlotBySlot(Counting(), Optimized()), Problem(Slots((2, 2)))),
    # More actions, cells or effects than memory is taken for.
    (EpsilonGreedy(), Problem(Arms(2**20 + 1))),
    (RewardConditioned(), Problem(Slots((2000, 2000)))),
    (RewardConditioned(CVAE(), Optimized()), TRILLION),
    (RewardConditioned(CVAE(), Iterated(2)), TRILLION),
    (PosteriorSubMax(BayesianFeatures()), Problem(Arms(500_000), 3)),
    (PosteriorSlots(), Problem(Slots((100, 100)), 200)),
    (LinUCB(), Problem(Arms(2**16), context_width=9_999)),
    (HillClimbingThompson(), Problem(Slots((10_000, 10_000, 10_000)))),
    (FourierThompson(points=129), Problem(Box((0.0, 0.0), (1.0, 1.0)))),
    # A model that does not take the parameter.
    (
        GreedyRegression("sklearn.linear_model.LinearRegression", {"depth": 3}),
        Problem(Arms(3), context_width=2),
    ),
]


@pytest.mark.parametrize(("policy", "problem"), CASES, ids=lambda one: type(one).__name__)
def test_it_is_refused(policy, problem):
    with raises_code("invalid-input"):
        policy.init(problem, 1, np.random.default_rng(0))


def test_bounds_make_a_problem_acceptable():
    rng = np.random.default_rng(0)
    bounded = Problem(Slots((2, 2)), scale=Continuous(low=0.0, high=1.0))
    HillClimbingThompson().init(bounded, 1, rng)
    FourierThompson(points=128).init(Problem(Box((0.0, 0.0), (1.0, 1.0))), 1, rng)


def test_parts_of_another_kind_are_refused():
    for policy in (RewardConditioned, SlotBySlot):
        with raises_code("invalid-input"):
            policy(Counting, Tracking())
        with raises_code("invalid-input"):
            policy(Counting(), "submax")
        with raises_code("invalid-input"):
            policy(Tracking(), Counting())
    with raises_code("invalid-input"):
        BayesianFeatures(memory=Memory(window=5))


@pytest.mark.parametrize("policy", [EXP3(), PolicyGradient()], ids=repr)
def test_feedback_without_propensities_is_refused_where_they_are_needed(policy, seed):
    rng, problem = np.random.default_rng(seed), Problem(Arms(2))
    feedback = some_feedback(problem, 1, 5, seed)._replace(log_prob=None)
    with raises_code("invalid-input"):
        policy.update(policy.init(problem, 1, rng), feedback, rng)


def test_a_listed_belief_of_another_shape_is_refused():
    for levels, listed in (((2, 2), (2, 4, 2, 5)), ((2,), (2, 4, 2, 3))):
        with raises_code("invalid-input"):
            TabularBelief(Arms(3), np.zeros(levels), np.zeros((2, 4, 2)), np.zeros(listed))
