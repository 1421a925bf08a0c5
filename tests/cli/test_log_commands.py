import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from submax.cli.logs import running
from submax.evaluation.comparison import USUAL
from submax.evaluation.learning import learn
from submax.evaluation.log import Log
from submax.schema.trained_policy import TrainedPolicy

from .conftest import done, files, invoke, refused

COLUMNS = [
    "policy", "estimator", "recommended", "value", "low", "high", "threshold",
    "rows", "effective", "largest", "largest_share", "mean_weight", "mean_error",
    "unsupported", "effective_rewards", "usual", "warnings",
]  # fmt: skip


def estimates(folder):
    with (folder / "evaluation" / "estimates.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_learn_writes_what_learn_learns(folder):
    options = ("--policy", "linucb", "--share", 0.5, "--by", "random", "--seed", 3)
    assert "200 rows" in done("learn", "log.csv", *options)
    expected = learn(Log.read("log.csv"), "linucb", share=0.5, by="random", seed=3)
    assert (folder / "policy.safetensors").read_bytes() == expected.to_bytes()


def test_learn_marks_the_best_of_several_policies(folder):
    lines = Path("log.csv").read_text().splitlines()
    Path("more.csv").write_text("\n".join([lines[0], *lines[1:] * 3]))
    said = done("learn", "more.csv", "--policy", "linucb", "--policy", "linucb@greedy")
    assert said.count("* linucb") == 1
    # Both decide the same: more rows would not tell them apart.
    assert "0.0000 ± 0.0000" in said
    for fact in ("2 policies", "240 rows", "1200 rows"):
        assert fact in said


def test_learn_says_what_is_worth_knowing(folder):
    said = done(
        "learn", "log.csv", "--policy", "rcp-optimized", "--keep-rows", 5,
        "--column", "propensity=", "--out", "other.safetensors",
    )  # fmt: skip
    # Propensities are estimated, the policy ignores the context, and the file has rows of the log.
    for fact in ("Note: 400 propensities", "Note: rcp-optimized", "5 rows"):
        assert fact in said
    assert files(folder) == ["log.csv", "other.safetensors"]
    without = done("learn", "log.csv", "--policy", "rcp-submax", "--column", "context=")
    assert "Note: rcp-submax" not in without
    Path("equal.csv").write_text("action,reward,propensity\n" + "A,0,0.5\nB,0,0.5\n" * 5)
    assert "Warning" in done("learn", "equal.csv", "--policy", "rcp-submax")


def test_learn_takes_parameters_and_a_declaration(folder):
    (folder / "page.toml").write_text(
        'actions = ["A", "B", "C", "D"]\nrewards = "binary"\n[context]\nage = "number"\n'
    )
    table = json.dumps({"kind": "epsilon-greedy", "epsilon": 0.3})
    done("learn", "log.csv", "--policy", table, "--declare", "page.toml")
    learned = TrainedPolicy.read("policy.safetensors")
    assert learned.specification == {"kind": "epsilon-greedy", "epsilon": 0.3}
    assert len(learned.schema.menu.slots[0].choices) == 4
    # Parameters may also stand behind a name.
    named = "rcp-submax,estimator.smoothing=0.5,max_enumerated_actions=10"
    done("learn", "log.csv", "--policy", named)
    policy = TrainedPolicy.read(folder / "policy.safetensors").policy
    assert (policy.estimator.smoothing, policy.max_enumerated_actions) == (0.5, 10)


def test_actions_are_described_by_a_declaration(folder):
    rows = [f'{name} = {{ price = {place}.0, genre = "rock" }}' for place, name in enumerate("ABC")]
    (folder / "songs.toml").write_text("\n".join(["[action_features]", *rows]))
    options = ["log.csv", "--declare", "songs.toml"]
    done("learn", *options, "--policy", "linucb", "--share", 0.5)
    learned = TrainedPolicy.read("policy.safetensors")
    assert learned.schema.menu.features["B"] == {"price": 1.0, "genre": "rock"}
    assert "linucb" in done("evaluate", *options, "--policy", "linucb", "--estimator", "snips")
    done("evaluate", "log.csv", "--policy", "policy.safetensors", "--estimator", "snips")


def printed(said):
    """The first two cells of the rows of the printed table of policies."""
    table = [line.split("│") for line in said.splitlines() if line.startswith("│")]
    return {row[1].strip(): row[2].strip() for row in table if row[1].strip()}


def test_evaluate_prints_a_table_and_writes_all_numbers(folder):
    evaluate = ("evaluate", "log.csv", "--policy", "linucb", "--policy", "rcp-submax")
    said = done(*evaluate, "--all")
    for word in ("logging policy", "linucb", "rcp-submax", *USUAL, "replay", "200 rows", "*"):
        assert word in said
    assert files(folder / "evaluation") == ["differences.csv", "estimates.csv"]
    rows = estimates(folder)
    assert list(rows[0]) == COLUMNS
    names = ["logging policy", *["linucb"] * 8, *["rcp-submax"] * 8]
    assert [row["policy"] for row in rows] == names
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows)
    # Without --all, one recommended estimate of each policy is printed, or of the best ones.
    chosen = {row["policy"]: row for row in rows if row["recommended"] == "True"}
    assert list(chosen) == list(dict.fromkeys(names))
    del chosen["logging policy"]
    assert printed(done(*evaluate)) == {name: row["estimator"] for name, row in chosen.items()}
    best = max(chosen, key=lambda name: float(chosen[name]["value"]))
    assert list(printed(done(*evaluate, "--top", 1))) == [best]
    assert len(estimates(folder)) == len(rows)


@pytest.mark.parametrize(("seconds", "printed"), [(0.0, True), (3600.0, False)])
def test_work_that_takes_some_seconds_says_what_it_does(seconds, printed, folder, monkeypatch):
    monkeypatch.setattr(running, "SILENT_SECONDS", seconds)
    result = invoke("evaluate", "log.csv", "--policy", "rcp-submax", "--estimator", "ips")
    assert ("rcp-submax (1 of 1)" in result.stderr) == printed
    done("learn", "log.csv", "--policy", "linucb")
    result = invoke("score", "log.csv", "--policy", "policy.safetensors")
    assert ("row 1 of 400" in result.stderr) == printed


def test_evaluate_reads_a_parquet_file_and_writes_a_report(folder):
    pq.write_table(pc.read_csv("log.csv"), "log.parquet")
    said = done(
        "evaluate", "log.parquet", "--policy", "random", "--interval", "normal", "--level", 0.9,
        "--estimator", '{"kind": "clipped", "threshold": 2}', "--out", "deep/there",
        "--column", "context=context_*", "--report", "report.html",
    )  # fmt: skip
    assert "evaluated on 200 rows" in said
    assert "90 %" in said
    assert "random" in (folder / "report.html").read_text(encoding="utf-8")
    assert "estimates.csv" in files(folder / "deep" / "there")


def test_evaluate_takes_a_learned_file_and_reads_the_log_as_it_was_read(folder):
    declared = 'actions = ["A", "B", "C", "D"]\n'
    (folder / "page.toml").write_text(declared)
    evaluate = ("evaluate", "log.csv", "--policy", "policy.safetensors", "--estimator", "ips")
    done("learn", "log.csv", "--policy", "linucb", "--share", 0.5, "--declare", "page.toml")
    other = done(*evaluate, "--policy", "random")
    assert "policy.safetensors" in other
    done("learn", "log.csv", "--policy", "linucb")
    # The rows from which it learned make it look too good.
    assert "too high" in done(*evaluate)
    assert "too high" not in other


def test_several_rewards_are_evaluated_in_one_table(folder):
    rng = np.random.default_rng(0)
    rows = ["action,click,buy,propensity"]
    rows += [f"{'AB'[one % 2]},{rng.integers(2)},{rng.integers(2)},0.5" for one in range(200)]
    (folder / "rewards.csv").write_text("\n".join(rows))
    asked = ["--column", "reward=click,buy", "--combine", "profit=click:0.5,buy:20"]
    done("evaluate", "rewards.csv", *asked, "--policy", "rcp-submax", "--estimator", "ips")
    assert {row["reward"] for row in estimates(folder)} == {"click", "buy", "profit"}


def test_how_many_rows_would_be_needed_is_said_if_asked(folder):
    rng = np.random.default_rng(0)
    rows = ["action,reward,propensity,visit,before"]
    rows += [
        f"{'AB'[rng.integers(2)]},{rng.integers(2)},0.5,{one // 2},{rng.random()}"
        for one in range(200)
    ]
    (folder / "visits.csv").write_text("\n".join(rows))
    columns = ["--column", "session=visit", "--column", "covariate=before"]
    asked = ["--effect", "0.02", "--interval", "sequential"]
    said = done("evaluate", "visits.csv", *columns, *asked, "--policy", "rcp-submax", "--all")
    assert re.search(r"evaluated rows .* 0.02 ", said)
    assert "per-decision" in said
    earned = float(estimates(folder)[0]["value"])
    said = done("evaluate", "visits.csv", "--policy", "random", "--effect", "10%")
    assert f"a difference of {0.1 * earned:.4g} in" in said
    for wrong in ("tenth", "0%"):
        assert "--effect" in refused(
            "evaluate", "visits.csv", "--policy", "random", "--effect", wrong
        )


def test_tune_learns_the_best_parameters_from_all_rows(folder):
    lines = Path("log.csv").read_text().splitlines()
    Path("more.csv").write_text("\n".join([lines[0], *lines[1:] * 3]))
    said = done(
        "tune", "more.csv", "--policy", "epsilon-greedy-0.1", "--search", "epsilon=0.05,0.9",
        "--trials", 4, "--out", "best.safetensors",
    )  # fmt: skip
    (best,) = [line for line in said.splitlines() if line.startswith("Best: ")]
    learned = TrainedPolicy.read("best.safetensors")
    assert learned.specification == json.loads(best.removeprefix("Best: "))
    assert learned.specification["kind"] == "epsilon-greedy"
    assert learned.origin.rows == 1200
    assert said.count("* epsilon=") == 1


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        ("learn linucbb", "'linucb'"),
        ("learn old.safetensors", "'old.safetensors'"),
        ("learn rcp-submax,smoothing=1", "'smoothing'"),
        ("learn rcp-submax,estimator.smoothing=-1", "smoothing"),
        ("learn linucb --share 1.5", "1.5"),
        ("learn always=A", "submax evaluate"),
        ("learn linucb --column actoin=action", "'action'"),
        ("learn linucb --declare none.toml", "'none.toml'"),
        ("learn linucb --out log.csv/policy.safetensors", "'log.csv'"),
        ("evaluate linucb --policy linucb", "--policy"),
        ("evaluate bad.safetensors", "'bad.safetensors'"),
        ("evaluate linucb --estimator ipss", "'ips'"),
        ("evaluate linucb --estimator pseudo-inverse", "pseudo-inverse"),
        ("evaluate linucb --level 95", "level"),
        ("evaluate linucb --combine profit", "--combine"),
        ("evaluate linucb --out log.csv", "'log.csv'"),
        ("evaluate linucb --report page.pdf", "'page.pdf'"),
        ("tune epsilon-greedy-0.1", "--search"),
        ("tune epsilon-greedy-0.1 --search epsilon", "KEY=VALUES"),
        ("tune epsilon-greedy-0.1 --search epsilon=", "KEY=VALUES"),
        ("tune epsilon-greedy-0.1 --search epsilon=2..1", "2..1"),
        ("tune epsilon-greedy-0.1 --search epsilonn=1", "epsilonn"),
    ],
)
def test_wrong_options_write_nothing(folder, words, fact):
    command, policy, *options = words.split()
    (folder / "bad.safetensors").write_bytes(b"no policy")
    assert fact in refused(command, "log.csv", "--policy", policy, *options)
    assert files(folder) == ["bad.safetensors", "log.csv"]


def test_policies_must_be_named_and_a_function_is_one_in_python_only(folder):
    assert "always=*" in refused("evaluate", "log.csv")
    (folder / "mine.py").write_text("def first(columns): ...")
    assert "compare()" in refused("evaluate", "log.csv", "--policy", "mine.py:first")


def test_a_learned_policy_scores_a_file_without_actions_and_rewards(folder):
    done("learn", "log.csv", "--policy", "linear-thompson")
    log, learned = Log.read("log.csv"), TrainedPolicy.read("policy.safetensors")
    age = log.context[:5, 0]
    rows = [f"v{place};u{place % 2};{str(one).replace('.', ',')}" for place, one in enumerate(age)]
    Path("visits.csv").write_text("\n".join(["id;user;age", *rows]))
    done("score", "visits.csv", "--policy", "policy.safetensors")
    with Path("scores.csv").open(newline="") as file:
        scored = list(csv.DictReader(file))
    expected = learned.probabilities(log.schema.context.encode_rows(log.context[:5]))
    names = [one.name for one in log.schema.menu.slots[0].choices]
    found = [[float(row[f"prob_{name}"]) for name in names] for row in scored]
    np.testing.assert_allclose(found, expected)
    assert [row["id"] for row in scored] == [f"v{place}" for place in range(5)]
    assert [row["user"] for row in scored] == ["u0", "u1", "u0", "u1", "u0"]
    assert [row["action"] for row in scored] == [names[one] for one in expected.argmax(axis=1)]
    Path("some.csv").write_text("age,eligible\n1,A\n2,A|Z\n")
    assert "'A|Z'" in refused("score", "some.csv", "--policy", "policy.safetensors")
    assert "reward" in refused(
        "score", "visits.csv", "--policy", "policy.safetensors", "--column", "reward=age"
    )


def test_named_columns_are_candidates(folder):
    Path("new.csv").write_text(
        "action,reward,propensity,prob_A,prob_B\n" + "A,1,0.5,0.8,0.2\nB,0,0.5,0.8,0.2\n" * 50
    )
    mine = ("mine=columns=prob_*", "sure=always=A", "new=epsilon-greedy-0.1,epsilon=1.0")
    policies = [word for one in mine for word in ("--policy", one)]
    done("evaluate", "new.csv", *policies, "--estimator", "ips")
    value = {row["policy"]: float(row["value"]) for row in estimates(folder)}
    # A earns 1.
    assert [value[name] for name in ("mine", "sure", "new")] == pytest.approx([0.8, 1.0, 0.5])
