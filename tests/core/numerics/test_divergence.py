import warnings

import numpy as np

from submax.core.numerics.divergence import DivergedWarning, warn_of_divergence


def test_each_replica_that_diverged_is_named_with_its_step():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_divergence(np.array([-1, 0, -1, 17]))
    assert [one.category for one in caught] == [DivergedWarning, DivergedWarning]
    assert [str(one.message) for one in caught] == [
        f"the loss of replica {replica} was not finite at step {step}; "
        "it keeps its last good parameters"
        for replica, step in ((1, 0), (3, 17))
    ]


def test_without_divergence_nothing_is_said():
    warn_of_divergence(np.array([-1, -1]))
