import pytest

from submax.experiments.running.illustration import illustrate
from submax.experiments.specification import load_named
from submax.experiments.statements.illustration_statements import illustration_statements
from submax.experiments.statements.verdict import Verdict


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """The results of the illustration in 300 environments."""
    directory = tmp_path_factory.mktemp("illustration")
    illustrate(load_named("illustration").changed(replicas=300), directory)
    return directory


def test_the_paper_orders_expected_rewards_as_they_are(directory):
    random, order, zeroed = illustration_statements(directory)
    pairs = [(one.left, one.right) for one in (*random.comparisons, *order.comparisons)]
    assert pairs == [
        ("rcp-negative", "random"),
        ("random", "rcp-optimistic"),
        ("random", "rcp-optimized"),
        ("random", "rcp-submax"),
        ("rcp-optimistic", "rcp-optimized"),
        ("rcp-optimized", "rcp-submax"),
    ]
    assert random.verdict is order.verdict is zeroed.verdict is Verdict.HOLDS


def test_the_optimized_policy_zeroes_one_action_and_submax_more(directory):
    (zeroed,) = illustration_statements(directory)[2].comparisons
    # Two actions are zeroed only if both reach their bound at the same weight.
    assert 1 <= zeroed.left_mean < 1.2
    assert zeroed.right_mean > 2


def test_statements_about_policies_that_were_not_run_have_no_verdict(tmp_path):
    own = load_named("illustration").changed(replicas=20, policies=["random", "rcp-submax"])
    illustrate(own, tmp_path)
    random, order, zeroed = illustration_statements(tmp_path)
    assert [(one.left, one.right) for one in random.comparisons] == [("random", "rcp-submax")]
    assert random.counts[Verdict.NOT_RUN] == 3
    assert order.verdict is zeroed.verdict is Verdict.NOT_RUN
