"""The published results were made with the settings of today's experiments."""

import csv
from pathlib import Path

import msgspec
import pytest

from submax.simulation.experiment import configurations, experiment_groups, load_named, policy_name

GENERATORS = Path(__file__).parents[2] / "docs" / "generators"
RIVALS = experiment_groups()["rivals"]
EXPERIMENTS = [name for names in experiment_groups().values() for name in names]
WITHOUT_CURVES = {"illustration", "offline"}
"""Experiments whose summary has no row for every policy in every configuration."""


@pytest.fixture(autouse=True)
def _generators(monkeypatch):
    monkeypatch.syspath_prepend(str(GENERATORS))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_results_were_made_with_the_settings_of_the_experiment(name):
    from published import settings_of

    settings = msgspec.to_builtins(load_named(name))
    assert settings_of(name)["specification"] == msgspec.json.decode(msgspec.json.encode(settings))


@pytest.mark.parametrize("name", sorted({*EXPERIMENTS} - WITHOUT_CURVES))
def test_results_have_every_policy_in_every_configuration(name):
    from published import rows_of

    specification = load_named(name)
    required = {policy_name(policy) for policy in specification.policies}
    more = {policy_name(policy) for policy in specification.more_policies}
    rows = rows_of(name)
    keys = list(rows[0])
    labels = keys[: keys.index("policy")]
    found: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in labels), []).append(row["policy"])
    assert len(found) == len(list(configurations(specification)))
    for policies in found.values():
        assert len(set(policies)) == len(policies)
        assert required <= set(policies) <= required | more
    assert {row["replicas"] for row in rows} == {str(specification.replicas)}
    # A data set that is used without replacement can have fewer rows.
    assert max(int(row["observations"]) for row in rows) == specification.observations


@pytest.mark.parametrize("name", RIVALS)
def test_differences_belong_to_the_published_means(name):
    from published import cell, rows_of
    from rivals_differences import differences_of, recommended

    means = {cell(row): float(row["final_mean"]) for row in rows_of(name)}
    found = differences_of(name)
    assert set(found) == set(means)
    for where, one in found.items():
        assert one.mean == pytest.approx(means[where] - means[*where[:-1], recommended(name)])


@pytest.mark.parametrize("name", RIVALS)
def test_whatever_is_decidedly_ahead_is_named_in_the_readme(name):
    from rivals_differences import differences_of

    readme = (GENERATORS.parents[1] / "README.md").read_text(encoding="utf-8")
    ahead = {cell[-1] for cell, one in differences_of(name).items() if one.is_less}
    assert {policy for policy in ahead if f"`{policy}`" not in readme} == set()


def test_every_claim_that_does_not_hold_has_a_reason():
    from claims import SECTIONS, claims_of
    from reasons import NOTES, REASONS

    claims = [claim for name in SECTIONS for claim in claims_of(name, "paper")]
    assert {*REASONS, *NOTES} <= {claim.text for claim in claims}
    failed = {claim.text for claim in claims if claim.verdict == "does not hold"}
    assert failed <= set(REASONS)


@pytest.mark.parametrize("problem", ["contextual", "combinatorial"])
def test_every_method_had_the_same_number_of_candidates(problem):
    from published import RESULTS

    with (RESULTS / "tuning" / f"{problem}.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] != "random"]
    counts = {row["method"]: 0 for row in rows}
    for row in rows:
        counts[row["method"]] += 1
    assert set(counts.values()) == {36}
