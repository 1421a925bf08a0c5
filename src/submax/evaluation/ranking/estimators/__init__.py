"""Estimators of rankings, one in each file."""

from submax.evaluation.ranking.estimators.cascade_doubly_robust import CascadeDoublyRobust
from submax.evaluation.ranking.estimators.independent_inverse_propensity import (
    IndependentInversePropensity,
)
from submax.evaluation.ranking.estimators.position_based import PositionBased
from submax.evaluation.ranking.estimators.reward_interaction import RewardInteraction
from submax.evaluation.ranking.estimators.slate_inverse_propensity import SlateInversePropensity
from submax.evaluation.ranking.ranking_estimator import RankingEstimator

RANKING_ESTIMATORS: dict[str, type[RankingEstimator]] = {
    one.short: one
    for one in (
        CascadeDoublyRobust,
        RewardInteraction,
        SlateInversePropensity,
        PositionBased,
        IndependentInversePropensity,
    )
}
"""Estimators by name, in the order in which they are recommended: fewer assumptions and a smaller
variance come first."""
