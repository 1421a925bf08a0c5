import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

from submax.cli import main
from submax.client import Client
from submax.core.running import extras
from submax.evaluation.choosing.learning import learn
from submax.evaluation.logs.log import Log
from submax.evaluation.report.estimator_choice import USUAL
from submax.schema.learned import Learned

COLUMNS = [
    "policy",
    "estimator",
    "recommended",
    "value",
    "low",
    "high",
    "threshold",
    "rows",
    "effective",
    "largest",
    "largest_share",
    "mean_weight",
    "mean_error",
    "unsupported",
    "effective_rewards",
    "usual",
    "warnings",
]


def invoke(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def done(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments):
    """One sentence, and the status of wrong input."""
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert "Error: " in result.stderr
    assert result.stdout == ""
    return result.stderr


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """One in which there is a log."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    action = rng.integers(3, size=400)
    with (tmp_path / "log.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["action", "reward", "propensity", "context_age"])
        for one in action:
            reward = int(rng.random() < 0.2 + 0.2 * one)
            writer.writerow(["ABC"[one], reward, 1 / 3, rng.normal(40, 10)])
    return tmp_path


def files(folder):
    return sorted(path.name for path in folder.iterdir())


# submax learn


def test_learn_writes_what_learn_learns(folder):
    said = done(
        "learn", "log.csv", "--policy", "linucb", "--share", 0.5, "--by", "random", "--seed", 3
    )
    assert said == "linucb learned from 200 rows of log.csv; written to policy.safetensors\n"
    expected = learn(Log.read("log.csv"), "linucb", share=0.5, by="random", seed=3)
    assert (folder / "policy.safetensors").read_bytes() == expected.to_bytes()


def test_learn_warns_if_all_rewards_are_equal(folder):
    Path("none.csv").write_text("action,reward,propensity\n" + "A,0,0.5\nB,0,0.5\n" * 5)
    assert "Warning: all rows have the reward 0," in done(
        "learn", "none.csv", "--policy", "rcp-submax"
    )


@pytest.mark.slow
def test_learn_takes_the_default_policy_if_none_is_named(folder):
    said = done("learn", "log.csv")
    assert "Note: 400 rows are too few to choose among policies" in said
    assert "rcp-adaptive learned from 400 rows of log.csv; written to policy.safetensors" in said
    expected = learn(Log.read("log.csv"))
    assert (folder / "policy.safetensors").read_bytes() == expected.to_bytes()


def test_learn_marks_the_best_of_several_policies(folder):
    lines = Path("log.csv").read_text().splitlines()
    Path("more.csv").write_text("\n".join([lines[0], *lines[1:] * 3]))
    said = done("learn", "more.csv", "--policy", "linucb", "--policy", "linucb@greedy")
    assert said.count("* linucb") == 1
    # Both decide the same, so that more rows would not tell them apart.
    assert "was chosen among 2 policies by dr on 240 rows from which it had not learned" in said
    assert "linucb@greedy makes no clear difference: +0 ± 0 on the choosing rows" in said
    assert "learned from 1200 rows of more.csv" in said


def test_learn_says_what_is_worth_knowing(folder):
    said = done(
        "learn", "log.csv", "--policy", "rcp-optimized", "--keep-rows", 5,
        "--column", "propensity=", "--out", "other.safetensors",
    )  # fmt: skip
    assert "Note: 400 propensities were estimated" in said
    assert "Note: rcp-optimized does not look at the context" in said
    assert "Note: the file stores the last 5 rows of the log" in said
    assert files(folder) == ["log.csv", "other.safetensors"]


def test_learn_says_nothing_of_a_context_that_is_not_there(folder):
    said = done("learn", "log.csv", "--policy", "rcp-submax", "--column", "context=")
    assert "does not look" not in said


def test_learn_takes_a_table_and_a_declaration(folder):
    (folder / "page.toml").write_text(
        'actions = ["A", "B", "C", "D"]\nrewards = "binary"\n[context]\nage = "number"\n'
    )
    table = json.dumps({"kind": "epsilon-greedy", "epsilon": 0.3})
    done("learn", "log.csv", "--policy", table, "--declare", "page.toml")
    learned = Learned.read("policy.safetensors")
    assert learned.specification == {"kind": "epsilon-greedy", "epsilon": 0.3}
    assert len(learned.schema.menu.slots[0].choices) == 4


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--policy", "linucbb"], "did you mean 'linucb'"),
        (["--policy", "{kind}"], "not valid JSON"),
        (["--policy", "old.safetensors"], "already learned"),
        (["--policy", "linucb", "--share", "1.5"], "share"),
        (["--policy", "linucb", "--keep-rows", "-1"], "keep_rows"),
        (["--policy", "linucb", "--seed", "-1"], "seed"),
        (["--policy", "linucb", "--column", "action"], "ROLE=NAME"),
        (["--policy", "linucb", "--column", "actoin=action"], "did you mean 'action'"),
        (["--policy", "linucb", "--declare", "none.toml"], "cannot read"),
        (["--policy", "linucb", "--out", "none/policy.safetensors"], "no folder"),
        (["--policy", "linucb", "--out", "policy.bin"], ".safetensors"),
        (["--policy", "linucb", "--by", "luck"], "--by"),
    ],
)
def test_wrong_options_of_learn_write_nothing(folder, options, sentence):
    assert sentence in refused("learn", "log.csv", *options)
    assert files(folder) == ["log.csv"]


def test_a_log_that_is_not_there_is_named(folder):
    for command in (["learn"], ["evaluate"], ["tune", "--search", "epsilon=0.1"]):
        said = invoke(*command, "none.csv", "--policy", "epsilon-greedy-0.1")
        assert said.exit_code != 0
        assert "none.csv" in said.stderr
    assert files(folder) == ["log.csv"]


# submax evaluate


def test_evaluate_prints_a_table_and_writes_all_numbers_and_a_figure(folder):
    said = done("evaluate", "log.csv", "--policy", "linucb", "--policy", "rcp-submax", "--all")
    assert said.startswith("logging policy: ")
    for word in ("linucb", "rcp-submax", *USUAL, "replay", "effective rows", "without support"):
        assert word in said
    assert "Note: evaluated on 200 rows, learned from 200" in said
    assert "Note: rcp-submax does not look at the context" in said
    assert files(folder / "evaluation") == [
        "differences.csv", "estimates.csv", "forest.pdf", "forest.png",
    ]  # fmt: skip
    with (folder / "evaluation" / "estimates.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == COLUMNS
    assert [row["policy"] for row in rows] == [
        "logging policy",
        *["linucb"] * 8,
        *["rcp-submax"] * 8,
    ]
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in rows)


def test_evaluate_prints_one_recommended_estimate_of_each_policy(folder):
    said = done("evaluate", "log.csv", "--policy", "linucb", "--policy", "rcp-submax")
    table = [line for line in said.splitlines() if line.startswith("│")]
    table = [line for line in table if line.split("│")[1].strip()]
    assert sorted(line.split("│")[1].strip() for line in table) == ["linucb", "rcp-submax"]
    assert "the one with the fewest warnings" in said
    with (folder / "evaluation" / "estimates.csv").open(encoding="utf-8", newline="") as file:
        chosen = [row for row in csv.DictReader(file) if row["recommended"] == "True"]
    assert [row["policy"] for row in chosen] == ["logging policy", "linucb", "rcp-submax"]
    printed = {line.split("│")[1].strip(): line.split("│")[2].strip() for line in table}
    assert printed == {row["policy"]: row["estimator"] for row in chosen[1:]}
    assert "*" in done("evaluate", "log.csv", "--policy", "linucb", "--all")


def test_plot_draws_the_forest_of_an_evaluation_again(folder):
    done("evaluate", "log.csv", "--policy", "linucb", "--policy", "random", "--estimator", "ips")
    figure = folder / "evaluation" / "forest.png"
    before = figure.read_bytes()
    figure.unlink()
    done("plot", "evaluation")
    assert figure.read_bytes() == before
    done("plot", "evaluation", "--policy", "random")
    assert figure.read_bytes() != before
    refused = invoke("plot", "evaluation", "--policy", "randm")
    assert refused.exit_code != 0
    assert "did you mean 'random'" in refused.stderr


def test_evaluate_reads_a_pattern_of_columns(folder):
    said = done(
        "evaluate", "log.csv", "--policy", "linucb", "--estimator", "ips",
        "--column", "context=context_*",
    )  # fmt: skip
    assert "linucb" in said


def test_evaluate_reads_parquet_files_in_parts_and_writes_a_report(folder):
    pq.write_table(pc.read_csv("log.csv"), "log.parquet")
    said = done(
        "evaluate", "log.parquet", "--policy", "random", "--estimator", "ips", "--read", "parts",
        "--jobs", 1, "--report", "report.html",
    )  # fmt: skip
    assert "evaluated on 200 of 400 rows, which were read in parts" in said
    assert "how to reproduce" in (folder / "report.html").read_text(encoding="utf-8").lower()
    assert "convert the log to Parquet" in refused(
        "evaluate", "log.csv", "--policy", "random", "--read", "parts"
    )


def test_evaluate_numbers_its_warnings(folder):
    said = done("evaluate", "log.csv", "--policy", "linucb", "--share", 0.9, "--estimator", "ips")
    assert "! 1" in said
    assert "Warning 1: by their weights the 40 rows are worth" in said


def test_evaluate_takes_a_learned_file_and_reads_the_log_as_it_was_read(folder):
    declared = 'actions = ["A", "B", "C", "D"]\n'
    (folder / "page.toml").write_text(declared)
    done("learn", "log.csv", "--policy", "linucb", "--share", 0.5, "--declare", "page.toml")
    said = done("evaluate", "log.csv", "--policy", "policy.safetensors", "--policy", "random")
    assert "policy.safetensors" in said
    assert "looks too good" not in said
    done("learn", "log.csv", "--policy", "linucb")
    assert "looks too good" in done("evaluate", "log.csv", "--policy", "policy.safetensors")


def test_evaluate_takes_intervals_levels_and_tables_of_estimators(folder):
    said = done(
        "evaluate", "log.csv", "--policy", "random", "--interval", "bootstrap", "--level", 0.9,
        "--estimator", '{"kind": "clipped", "threshold": 2}', "--out", "deep/there",
    )  # fmt: skip
    assert "90 %" in said
    assert files(folder / "deep" / "there") == [
        "differences.csv", "estimates.csv", "forest.pdf", "forest.png",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--policy", "linucbb"], "did you mean 'linucb'"),
        (["--policy", "linucb", "--policy", "linucb"], "the same name"),
        (["--policy", "none.safetensors"], "cannot read the policy"),
        (["--policy", "log.safetensors"], "damaged or no policy"),
        (["--policy", "linucb", "--estimator", "ipss"], "did you mean 'ips'"),
        (["--policy", "linucb", "--estimator", "pseudo-inverse"], "several slots"),
        (["--policy", "linucb", "--level", "95"], "level"),
        (["--policy", "linucb", "--share", "1"], "share"),
        (["--policy", "linucb", "--interval", "exact"], "--interval"),
        (["--policy", "linucb", "--out", "log.csv"], "is not a folder"),
    ],
)
def test_wrong_options_of_evaluate_write_nothing(folder, options, sentence):
    (folder / "log.safetensors").write_bytes(b"no policy")
    assert sentence in refused("evaluate", "log.csv", *options)
    assert files(folder) == ["log.csv", "log.safetensors"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--read parts --combine profit=click:1", "--combine does not go with --read parts"),
        ("--read parts --learn-from click", "--learn-from does not go with --read parts"),
        ("--read parts --slice age", "--slice does not go with --read parts"),
        ("--read parts --column reward=click,buy", "--column reward=A,B does not go with --read"),
        ("--jobs 2", "--jobs does not go with --read whole"),
        ("--jobs 2", "leave it out, or give --read parts"),
        ("--scheduler tcp://h:1", "--scheduler does not go with --read whole"),
        ("--read parts --jobs 2 --scheduler tcp://h:1", "--jobs does not go with --scheduler"),
    ],
)
def test_options_of_evaluate_that_would_be_ignored_are_refused(folder, options, sentence):
    said = refused("evaluate", "log.parquet", "--policy", "random", *options.split())
    assert sentence in said
    assert "unused-option" in said
    assert files(folder) == ["log.csv"]


def test_a_log_of_two_rows_is_evaluated_too(folder):
    (folder / "small.csv").write_text("action,reward,propensity\nA,1,0.5\nB,0,0.5\n")
    said = done("evaluate", "small.csv", "--policy", "random")
    assert "too few" in said


# submax tune


def test_tune_prints_every_trial_and_learns_the_best_from_all_rows(folder):
    pytest.importorskip("optuna")
    result = invoke(
        "tune", "log.csv", "--policy", "epsilon-greedy-0.1", "--search", "epsilon=0.05,0.9",
        "--trials", 4, "--out", "best.safetensors",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert result.stderr.count(" of 4 ") == 4
    best = json.loads(result.stdout.splitlines()[0].removeprefix("Best: "))
    assert best["kind"] == "epsilon-greedy"
    assert "took no part in the choice" in result.stdout
    assert "learned from all 400 rows; written to best.safetensors" in result.stdout
    learned = Learned.read("best.safetensors")
    assert learned.specification == best
    assert learned.origin.rows == 400


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--search", "epsilon"], "KEY=16,32"),
        (["--search", "epsilon=2..1"], "is not a range"),
        (["--search", "epsilonn=1"], "no parameter"),
        (["--search", "epsilon=7"], "epsilon"),
        (["--search", "epsilon=0.1", "--trials", "0"], "trials"),
        (["--search", "epsilon=0.1", "--estimator", "drr"], "did you mean 'dr'"),
        (["--search", "epsilon=0.1", "--out", "best.bin"], ".safetensors"),
        ([], "--search"),
    ],
)
def test_wrong_options_of_tune_write_nothing(folder, options, sentence):
    pytest.importorskip("optuna")
    said = refused("tune", "log.csv", "--policy", "epsilon-greedy-0.1", *options)
    assert sentence in said
    assert files(folder) == ["log.csv"]


def test_tune_without_optuna_says_what_to_install(folder, monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    said = refused("tune", "log.csv", "--policy", "epsilon-greedy-0.1", "--search", "epsilon=0.1")
    install = 'pip install "submax[tune]" (missing-extra)'
    assert said == f"Error: tuning needs optuna, not installed here: {install}\n"


# submax serve --learned


def test_serve_starts_from_a_learned_policy(folder, start):
    done("learn", "log.csv", "--policy", "linucb")
    process = start("serve", "page.db", "--port", 0, "--learned", "policy.safetensors")
    try:
        address = process.stderr.readline().rpartition(" ")[2].strip()
        with Client(address, "page") as client:
            decision = client.decide({"age": 30})
        assert decision.version == 1
        assert decision.action in ["A", "B", "C"]
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_serve_refuses_a_file_that_is_no_policy_and_makes_no_store(folder):
    (folder / "policy.safetensors").write_bytes(b"nothing")
    said = refused("serve", "page.db", "--learned", "policy.safetensors")
    assert "damaged or no policy" in said
    assert files(folder) == ["log.csv", "policy.safetensors"]


def test_a_policy_with_parameters_behind_its_name(folder):
    done("learn", "log.csv", "--policy", "rcp-submax,estimator.smoothing=0.5,listing_limit=10")
    policy = Learned.read(folder / "policy.safetensors").policy
    assert (policy.estimator.smoothing, policy.listing_limit) == (0.5, 10)


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ("rcp-submax,smoothing=1", "no parameter 'smoothing': give one of: estimator"),
        ("rcp-submax,estimator", "'estimator', and must have the form KEY=VALUE"),
        ("rcp-submax,estimator.smoothing=-1", "smoothing"),
        ("rcp-submix,estimator.smoothing=1", "did you mean 'rcp-submax'"),
    ],
)
def test_wrong_parameters_are_named(policy, sentence, folder):
    assert sentence in refused("learn", "log.csv", "--policy", policy)
    assert not (folder / "policy.safetensors").exists()


def test_an_aggregated_table_is_evaluated(folder):
    rows = ["headline,impressions,clicks,p", "A,1000,10,0.5", "B,800,40,0.4", "C,210,3,0.1"]
    (folder / "headlines.csv").write_text("\n".join(rows))
    options = ["--column", "action=headline", "--column", "propensity=p", "--by", "random"]
    counts = ["--column", "count=impressions", "--column", "successes=clicks"]
    said = done("evaluate", "headlines.csv", *options, *counts, "--policy", "rcp-submax", "--all")
    assert "the mean reward of 1005 rows" in said
    assert "evaluated on 1005 rows, learned from 1005" in said


def test_several_rewards_are_evaluated_in_one_table(folder, monkeypatch):
    render = Figure.savefig

    def savefig(figure, path, **options):
        render(figure, path, **options) if path.suffix == ".png" else path.touch()

    monkeypatch.setattr(Figure, "savefig", savefig)
    rng = np.random.default_rng(0)
    rows = ["action,click,buy,propensity"]
    rows += [f"{'AB'[one % 2]},{rng.integers(2)},{rng.integers(2)},0.5" for one in range(200)]
    (folder / "rewards.csv").write_text("\n".join(rows))
    asked = ["--column", "reward=click,buy", "--combine", "profit=click:0.5,buy:20"]
    said = done("evaluate", "rewards.csv", *asked, "--policy", "rcp-submax", "--estimator", "ips")
    assert "Reward profit" in said
    with (folder / "evaluation" / "estimates.csv").open() as file:
        found = {row["reward"] for row in csv.DictReader(file)}
    assert found == {"click", "buy", "profit"}
    figure = folder / "evaluation" / "profit" / "forest.png"
    drawn = figure.read_bytes()
    figure.unlink()
    # Rewards have different units: each has a figure of its own, and none has all of them.
    assert done("plot", "evaluation").count("forest.png") == 3
    assert figure.read_bytes() == drawn
    assert not (folder / "evaluation" / "forest.png").exists()
    assert "--combine" in refused(
        "evaluate", "rewards.csv", "--combine", "profit", "--policy", "rcp-submax"
    )


def test_how_many_rows_would_be_needed_is_said_if_asked(folder):
    rng = np.random.default_rng(0)
    rows = ["action,reward,propensity,visit,before"]
    rows += [
        f"{'AB'[rng.integers(2)]},{rng.integers(2)},0.5,{one // 2},{rng.random()}"
        for one in range(200)
    ]
    (folder / "visits.csv").write_text("\n".join(rows))
    columns = ["--column", "session=visit", "--column", "covariate=before"]
    asked = ["--half-width", "0.001", "--effect", "0.02", "--interval", "sequential"]
    said = done("evaluate", "visits.csv", *columns, *asked, "--policy", "rcp-submax", "--all")
    assert re.search(r"about \d{1,3}(,\d{3})+ evaluated rows give an interval of ±0.001", said)
    assert "evaluated rows show a difference of 0.02 in 8 of 10 logs" in said
    assert "per-decision" in said
    assert "--half-width" in refused(
        "evaluate", "visits.csv", "--half-width", "0", "--policy", "rcp-submax"
    )
