import pickle
import warnings

from submax.core.fallback import Fallback, standing_for


def test_it_keeps_its_count_and_words_when_pickled():
    restored = pickle.loads(pickle.dumps(Fallback("3 of 5 decisions were uniform", 3)))
    assert str(restored) == "3 of 5 decisions were uniform"
    assert restored.decisions == 3


def test_what_is_solved_once_stands_for_all_decisions_that_share_it():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with standing_for(100):
            warnings.warn(Fallback("simpler", 3), stacklevel=1)
            warnings.warn("another", RuntimeWarning, stacklevel=1)
    assert [one.category for one in told] == [Fallback, RuntimeWarning]
    assert told[0].message.decisions == 300
    assert str(told[0].message) == "simpler"
