import numpy as np
import pytest
from refusals import raises_code

from submax.core.conditioning.listed_belief import ListedBelief
from submax.core.spaces.arms import Arms
from submax.estimators.counting import Counting
from submax.policies.reward_conditioned.reward_conditioned import RewardConditioned
from submax.policies.reward_conditioned.slot_by_slot import SlotBySlot
from submax.strategies.submax import SubMax


@pytest.mark.parametrize("policy", [RewardConditioned, SlotBySlot])
@pytest.mark.parametrize(
    ("estimator", "strategy", "sentence"),
    [
        (Counting, SubMax(), r"the class Counting was given: give Counting\(\.\.\.\)"),
        (Counting(), SubMax, r"the class SubMax was given: give SubMax\(\.\.\.\)"),
        (Counting(), "submax", r"strategy must be a Strategy such as SubMax\(\), not 'submax'"),
        (SubMax(), Counting(), r"estimator must be an Estimator such as Counting\(\)"),
    ],
)
def test_parts_of_another_kind_are_refused(policy, estimator, strategy, sentence):
    with raises_code("invalid-input"):
        policy(estimator, strategy)


@pytest.mark.parametrize(
    ("levels", "prior", "listed", "sentence"),
    [
        ((2, 2), (2, 4, 2), (2, 4, 2, 5), r"listed has shape .*must have.*\(2, 4, 2, 3\)"),
        ((2, 2), (2, 4, 2), (2, 2, 3), r"listed has shape \(2, 2, 3\)"),
        ((2,), (2, 4, 2), (2, 4, 2, 3), r"levels has shape \(2,\)"),
    ],
)
def test_a_listed_belief_of_another_shape_is_refused(levels, prior, listed, sentence):
    with raises_code("invalid-input"):
        ListedBelief(Arms(3), np.zeros(levels), np.zeros(prior), np.zeros(listed))
