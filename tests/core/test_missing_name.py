import pytest

import submax


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("SubMax", ": write from submax.strategies import SubMax"),
        ("Thompson", ": write from submax.policies import Thompson"),
        ("Counting", ": write from submax.estimators import Counting"),
        ("check_policy", ": write from submax.testing import check_policy"),
        ("learn", ": write from submax.evaluation import learn"),
        ("cli", ": write import submax.cli"),
        ("load", ": did you mean submax.Bandit.load?"),
        ("bandit", ": did you mean submax.Bandit?"),
        ("Bernouli", ": did you mean submax.Bernoulli?"),
        ("nothing_like_it", ""),
        ("warnings", ""),
        ("_private", ""),
    ],
)
def test_a_missing_name_says_where_it_is(name, hint, monkeypatch):
    # A package that another test has imported is an attribute.
    monkeypatch.delattr(submax, name, raising=False)
    with pytest.raises(AttributeError) as error:
        getattr(submax, name)
    assert str(error.value) == f"module 'submax' has no attribute {name!r}{hint}"
