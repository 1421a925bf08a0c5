"""How the library runs in a process: its fallbacks, and what it needs."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from refusals import raises_code

from submax.core.errors import FallbackWarning, counted_fallbacks, fall_back, standing_for
from submax.core.optional import require_extra


def test_what_is_missing_is_refused_as_an_import_error():
    require_extra("neural", "this", "numpy", "scipy")
    with raises_code("missing-extra") as refused:
        require_extra("neural", "this", "numpy", "there_is_no_such_module")
    assert isinstance(refused.value, ImportError)
    assert "submax[neural]" in str(refused.value)


class Simpler(FallbackWarning):
    """A kind of its own."""


def test_where_nobody_counts_a_fallback_is_a_warning_from_where_it_happened():
    def strategy():
        fall_back(Simpler, "optimistic instead", 7)

    # Counting has ended, although by an error.
    with pytest.raises(KeyError), counted_fallbacks():
        raise KeyError("arm")
    with pytest.warns(Simpler) as told:
        strategy()
    assert told[0].message.decisions == 7
    assert told[0].filename == __file__
    restored = pickle.loads(pickle.dumps(told[0].message))
    assert (str(restored), restored.decisions) == (str(told[0].message), 7)


def test_decisions_of_all_fallbacks_are_counted_without_a_warning():
    with counted_fallbacks() as counts:
        fall_back(FallbackWarning, "uniform instead", 3)
        fall_back(Simpler, "optimistic instead", 40)
        # What is solved once stands for all decisions that share it.
        with standing_for(100):
            fall_back(FallbackWarning, "uniform instead", 3)
    assert counts == [3, 40, 300]


def test_threads_count_fallbacks_for_themselves():
    def count(decisions):
        with counted_fallbacks() as counts:
            for _ in range(200):
                fall_back(FallbackWarning, "uniform instead", decisions)
        return sum(counts)

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(count, range(1, 9))) == [200 * each for each in range(1, 9)]
