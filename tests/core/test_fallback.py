import pickle

from submax.core.fallback import Fallback


def test_it_keeps_its_count_and_words_when_pickled():
    restored = pickle.loads(pickle.dumps(Fallback("3 of 5 decisions were uniform", 3)))
    assert str(restored) == "3 of 5 decisions were uniform"
    assert restored.decisions == 3
