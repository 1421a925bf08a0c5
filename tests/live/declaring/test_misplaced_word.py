import re

import pytest
from refusals import raises_code

import submax


@pytest.mark.parametrize(
    ("word", "value", "place"),
    [
        ("epsilon", 0.1, "policy={'kind': 'epsilon-greedy', 'epsilon': 0.1}"),
        ("pending", True, "'pending': True}"),
        ("holdout", 0.2, "guard_rails={'holdout': 0.2}"),
        (
            "distribution",
            (0.0, 1.0),
            "'strategy': {'kind': 'target', 'distribution': (0.0, 1.0)}}",
        ),
        ("smoothing", 1.0, "'estimator': {'kind': 'counting', 'smoothing': 1.0}}"),
    ],
)
def test_a_word_that_belongs_elsewhere_is_shown_there(word, value, place):
    for declare in (submax.Bandit, lambda *given, **words: submax.open(":memory:", **words)):
        with raises_code("invalid-input") as refusal:
            declare(["A", "B"], **{word: value})
        assert str(refusal.value).endswith(place)


def test_the_example_in_the_message_works():
    with pytest.raises(submax.InputError) as refusal:
        submax.Bandit(["A", "B"], epsilon=0.1)
    example = re.search(r"policy=(\{.*\})$", str(refusal.value))[1]
    assert submax.Bandit(["A", "B"], policy=eval(example)).policy.epsilon == 0.1


def test_another_word_gets_the_list_of_settings():
    with raises_code("invalid-input"):
        submax.Bandit(["A", "B"], polcy="random")
