import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from submax.strategies.submax import SubMax


def test_by_hand(small_table):
    # (−0.4, 0.1, 0.3) clipped and divided by 0.4
    assert np.allclose(SubMax().probabilities(small_table), [0.0, 0.25, 0.75])


def test_it_is_uniform_where_both_rows_agree(small_table):
    same = small_table._replace(probabilities=np.array([[0.6, 0.3, 0.1]] * 2))
    assert np.allclose(SubMax().probabilities(same), 1 / 3)


def test_it_is_uniform_until_both_levels_were_seen(small_table):
    for prior in ([1.0, 0.0], [0.0, 1.0]):
        table = small_table._replace(prior=np.array(prior))
        assert np.allclose(SubMax().probabilities(table), 1 / 3)


@given(data=st.data())
def test_it_is_one_step_of_improvement_by_positive_advantage(joint_tables, data):
    table, logging, value = data.draw(joint_tables)
    mean = logging @ value
    difference = table.probabilities[1] - table.probabilities[0]
    assert np.allclose(difference, logging * (value - mean) / (mean * (1 - mean)))
    gain = logging * np.maximum(value - mean, 0)
    assume(gain.sum() > 1e-9)
    assert np.allclose(SubMax().probabilities(table), gain / gain.sum(), atol=1e-6)
