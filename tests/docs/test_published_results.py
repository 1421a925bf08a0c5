"""The published results were made with the settings of today's experiments."""

import csv

import msgspec
import numpy as np
import pandas as pd
import pytest

from submax.research.paper.claims import statements_of
from submax.simulation.compare import Finals
from submax.simulation.experiment import configurations, experiment_groups, load_named, policy_name

EXPERIMENTS = [name for names in experiment_groups().values() for name in names]
WITHOUT_CURVES = {"illustration", "offline"}
"""Experiments whose summary has no row for every policy in every configuration."""


def rows_of(name, table="summary"):
    """The rows of a published table."""
    from results import folder_of

    with (folder_of(name) / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_results_were_made_with_the_settings_of_the_experiment(name):
    from results import settings_of

    settings = msgspec.to_builtins(load_named(name))
    assert settings_of(name)["specification"] == msgspec.json.decode(msgspec.json.encode(settings))


@pytest.mark.parametrize("name", sorted({*EXPERIMENTS} - WITHOUT_CURVES))
def test_results_have_every_policy_in_every_configuration(name):
    specification = load_named(name)
    required = {policy_name(policy) for policy in specification.policies}
    more = {policy_name(policy) for policy in specification.more_policies}
    rows = pd.DataFrame(rows_of(name))
    labels = list(rows)[: list(rows).index("policy")]
    found = [set(group["policy"]) for _, group in rows.groupby(labels)]
    assert len(found) == len(list(configurations(specification)))
    assert not rows.duplicated([*labels, "policy"]).any()
    assert all(required <= policies <= required | more for policies in found)
    assert set(rows["replicas"]) == {str(specification.replicas)}
    # A data set that is used without replacement can have fewer rows.
    assert rows["observations"].astype(int).max() == specification.observations


@pytest.mark.parametrize("name", sorted({*EXPERIMENTS} - {"offline"}))
def test_a_reader_can_recompute_means_and_errors_from_the_replicas(name):
    import results

    assert (results.folder_of(name) / "finals.parquet").stat().st_size < 1_048_576
    finals, summary = results.finals_of(name), results.rows_of(name)
    keys = list(summary)[: list(summary).index("policy") + 1]
    columns = {"regret": "final_", "reward": "final_reward_"}
    # Published replicas have 17 bits, except those of the illustration.
    relative, absolute = 1e-4, 1e-3
    if name == "illustration":
        columns, relative, absolute = {"expected_reward": ""}, 1e-6, 0.0
    for measure, column in columns.items():
        values = finals.assign(value=finals[measure].astype(float)).groupby(keys)["value"]
        again = values.agg(mean_again="mean", error_again="sem").reset_index()
        found = summary.merge(again, on=keys)
        assert len(found) == len(summary) == len(again)
        mean = found[f"{column}mean" if column else measure]
        error = found[f"{column}standard_error"]
        np.testing.assert_allclose(found["mean_again"], mean, relative, absolute)
        np.testing.assert_allclose(found["error_again"], error, 10 * relative, absolute)


@pytest.mark.parametrize("name", ["bernoulli", "contextual", "combinatorial", "ablations"])
def test_every_published_comparison_follows_from_the_replicas(name):
    """Statements are tested anew on the published replicas."""
    from results import folder_of

    published = {
        (row["statement"], row["where"], row["left"]): row for row in rows_of(name, "statements")
    }
    finals = Finals.read(folder_of(name))
    again = [
        (statement, one)
        for statement in statements_of(load_named(name).statements, finals)
        for one in statement.comparisons
    ]
    assert len(again) == len(published)
    for statement, one in again:
        row = published[statement.text, one.where, one.left]
        for column, value in (("left_mean", one.left_mean), ("right_mean", one.right_mean)):
            assert float(row[column]) == pytest.approx(value, rel=1e-4, abs=1e-3)
        error = float(row["standard_error_of_difference"])
        assert error == pytest.approx(one.error, rel=1e-3, abs=1e-4)
        assert (row["verdict"], row["comparison"]) == (statement.verdict, one.verdict)


def test_the_bake_off_has_every_method_on_every_table_with_every_seed():
    from results import RESULTS

    scores = pd.read_csv(RESULTS / "bakeoff" / "scores.csv")
    for _, rows in scores.groupby("regime"):
        every = rows["table"].nunique() * rows["method"].nunique() * rows["seed"].nunique()
        assert len(rows) == len(rows.drop_duplicates(["table", "method", "seed"])) == every
