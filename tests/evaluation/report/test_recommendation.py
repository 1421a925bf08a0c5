from submax.evaluation.intervals.confidence_interval import ConfidenceInterval
from submax.evaluation.ranking.estimators import RANKING_ESTIMATORS
from submax.evaluation.report.estimate import Estimate
from submax.evaluation.report.recommendation import (
    ORDER,
    RANKING_ORDER,
    recommended,
    rule_of,
)


def estimate(kind, cautions=0, value=0.5):
    sentences = tuple(f"caution {number}" for number in range(cautions))
    return Estimate("p", kind, value, ConfidenceInterval(0.0, 1.0), None, None, sentences)


def best(*estimates):
    return recommended(estimates).estimator


def test_the_fewest_warnings_decide_and_then_the_order():
    assert best(estimate("ips"), estimate("snips"), estimate("dr")) == "dr"
    assert best(estimate("ips"), estimate("snips"), estimate("dr", 1)) == "snips"
    assert best(estimate("ips", 2), estimate("snips", 3), estimate("dr", 3)) == "ips"


def test_the_direct_method_is_recommended_only_alone():
    assert best(estimate("dm"), estimate("ips", 5)) == "ips"
    assert best(estimate("dm", 1)) == "dm"


def test_an_estimate_without_a_value_is_not_recommended():
    assert best(estimate("dr", value=float("nan")), estimate("ips", 4)) == "ips"


def test_an_estimator_with_parameters_comes_after_those_by_name():
    assert best(estimate("ClippedInversePropensity(threshold=2.0)"), estimate("replay")) == "replay"


def test_the_rule_names_the_estimators_that_were_used_and_no_others():
    assert ", ".join(ORDER) in rule_of(["dm", *reversed(ORDER)])
    assert rule_of(["ips", "dr"]).endswith("among equals the first of dr, ips")
    assert rule_of(["ips", "dm"]).endswith("fewest warnings; dm only if there is no other")
    assert rule_of(["sips", "rips"]).endswith("among equals the first of rips, sips")


def test_rankings_are_recommended_in_the_order_of_the_rule():
    assert list(RANKING_ESTIMATORS) == list(RANKING_ORDER)
