import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from submax.core.running.fallback import FallbackWarning, counted_fallbacks, fall_back, standing_for


class Simpler(FallbackWarning):
    """A kind of its own."""


def test_it_keeps_its_count_and_words_when_pickled():
    restored = pickle.loads(pickle.dumps(FallbackWarning("3 of 5 decisions were uniform", 3)))
    assert str(restored) == "3 of 5 decisions were uniform"
    assert restored.decisions == 3


def test_where_nobody_counts_it_is_a_warning_from_where_it_happened():
    with pytest.warns(Simpler, match="optimistic instead") as told:
        fall_back_here()
    assert told[0].message.decisions == 7
    assert told[0].filename == __file__


def fall_back_here():
    def strategy():
        fall_back(Simpler, "optimistic instead", 7)

    strategy()


def test_the_decisions_of_all_fallbacks_add_up_without_a_warning():
    with counted_fallbacks() as counts:
        for decisions in (3, 1, 3):
            fall_back(FallbackWarning, "uniform instead", decisions)
        fall_back(Simpler, "optimistic instead", 40)
    assert counts == [3, 1, 3, 40]


def test_what_is_solved_once_stands_for_all_decisions_that_share_it():
    with counted_fallbacks() as counts:
        with standing_for(100):
            fall_back(FallbackWarning, "uniform instead", 3)
        fall_back(FallbackWarning, "uniform instead", 3)
    assert counts == [300, 3]


def test_an_error_in_the_body_passes_and_ends_the_counting():
    with pytest.raises(KeyError), counted_fallbacks():
        raise KeyError("arm")
    with pytest.warns(FallbackWarning):
        fall_back(FallbackWarning, "uniform instead", 1)


def test_threads_count_for_themselves():
    def count(decisions):
        with counted_fallbacks() as counts:
            for _ in range(200):
                fall_back(FallbackWarning, "uniform instead", decisions)
        return sum(counts)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(count, range(1, 9))) == [200 * each for each in range(1, 9)]
