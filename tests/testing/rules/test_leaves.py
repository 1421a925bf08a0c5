import numpy as np

from submax.testing.rules.leaves import copied, leaves, unchanged


def test_a_change_in_any_depth_is_seen():
    state = (np.zeros(2), {"inner": [np.ones(3), np.array([np.nan])]}, "name")
    before = copied(state)
    assert len(leaves(state)) == 3
    assert unchanged(before, state)
    state[1]["inner"][0][1] = 2.0
    assert not unchanged(before, state)


def test_an_array_more_or_less_is_a_change():
    assert not unchanged(copied((np.zeros(2),)), (np.zeros(2), np.zeros(2)))
    assert not unchanged(copied((np.zeros(2),)), (np.zeros((2, 1)),))
