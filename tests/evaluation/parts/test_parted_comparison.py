from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest
from builtin_examples import examples_of
from distributed import LocalCluster
from pyarrow import parquet
from refusals import raises_code

from submax.evaluation import Log, PartedLog, batches, compare, compare_rewards
from submax.evaluation.estimators import OFF_POLICY

ROWS = 1200
POLICIES = {"counts": "rcp-submax", "greedy": "linucb@greedy"}


def table_of(seed, rows=ROWS, rewards="binary"):
    rng = np.random.default_rng(seed)
    chance = rng.dirichlet(np.full(4, 5.0), size=rows) * 0.8 + 0.05
    action = np.minimum((chance.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1), 3)
    age = rng.normal(size=rows)
    reward = rng.random(rows) < 0.2 + 0.2 * (action == 2) * (age > 0)
    if rewards != "binary":
        reward = 1000 + rng.normal(size=rows) + reward
    return {
        "action": np.array(["a", "b", "c", "d"])[action],
        "reward": reward.astype(float),
        "propensity": chance[np.arange(rows), action],
        "context_country": rng.choice(["fr", "de"], rows),
        "context_age": age,
    }


@pytest.fixture
def folder_of(tmp_path):
    def make(table, files=3):
        """Write a table as several Parquet files, and return their folder."""
        folder = tmp_path / "log"
        folder.mkdir(exist_ok=True)
        arrow = pa.table(table)
        step = -(-arrow.num_rows // files)
        for number in range(files):
            piece = arrow.slice(number * step, step)
            parquet.write_table(piece, folder / f"part{number}.parquet", row_group_size=300)
        return folder

    return make


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(batches, "PART_ROWS", 250)
    monkeypatch.setattr(batches, "UNIT_ROWS", 500)


def numbers(found):
    """All numbers of a comparison, which must not depend on how the log was read."""
    estimates = [
        [one.value, *one.interval, one.threshold or 0.0, *one.diagnostics]
        for one in found.estimates
    ]
    differences = [[one.value, *one.interval, one.error] for one in found.differences]
    return np.concatenate([np.ravel(estimates), np.ravel(differences)])


def check_same(one, other):
    np.testing.assert_allclose(numbers(one), numbers(other), rtol=1e-8, atol=1e-10)
    for first, second in zip(one.estimates, other.estimates, strict=True):
        assert (first.cautions, first.recommended) == (second.cautions, second.recommended)


@pytest.mark.parametrize(
    ("interval", "baseline"),
    [
        ("gamma", "logging policy"),
        ("normal", "greedy"),
        ("bernstein", "counts"),
        ("bootstrap", "greedy"),
    ],
)
def test_sums_over_parts_give_the_results_of_a_log_in_memory(folder_of, seed, interval, baseline):
    table = table_of(seed)
    # Some values occur in one file only.
    table["context_country"][-50:] = "us"
    table["action"][-60:-40] = "0"
    given = np.random.default_rng(seed).dirichlet(np.ones(5), size=ROWS)
    table |= {f"prob_{name}": given[:, place] for place, name in enumerate("0abcd")}
    folder = folder_of(table)
    columns = {"probability": "prob_*"}
    log, parted = (read(folder, columns=columns) for read in (Log.read, PartedLog.open))
    assert parted.schema == log.schema
    policies = {**POLICIES, "columns": "columns=prob_*"}
    options = {"interval": interval, "baseline": baseline}
    if interval == "normal":
        # All estimators whose terms can be added up, with thresholds that are given or chosen.
        options["estimators"] = [
            {"kind": one.short, **asdict(one)}
            for one in examples_of(OFF_POLICY)
            if one.adds_up and not one.uses_groups and not one.uses_slots
        ]
    parts, whole = (compare(one, policies, **options) for one in (parted, log))
    check_same(parts, whole)


def test_the_size_of_parts_and_large_rewards_do_not_matter(folder_of, seed, monkeypatch):
    folder = folder_of(table_of(seed, rewards="continuous"))
    found = []
    for rows in (137, 100_000):
        monkeypatch.setattr(batches, "PART_ROWS", rows)
        found.append(compare(PartedLog.open(folder, jobs=1), POLICIES))
    check_same(*found)
    whole = compare(Log.read(folder), POLICIES)
    for one, other in zip(found[0].estimates, whole.estimates, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-9)
        assert one.interval == pytest.approx(other.interval, rel=1e-6)


def test_the_overview_is_that_of_a_log_in_memory(folder_of, seed, tmp_path):
    folder = folder_of(table_of(seed))
    parted = compare(PartedLog.open(folder, jobs=1), POLICIES)
    whole, mine = compare(Log.read(folder), POLICIES).overview, parted.overview
    assert mine.rows == whole.rows
    assert mine.rewards == pytest.approx(whole.rewards)
    assert mine.propensities == pytest.approx(whole.propensities)
    for one, other in zip(mine.choices, whole.choices, strict=True):
        assert one[:3] == other[:3]
        assert one.calibration.z == pytest.approx(other.calibration.z)
    assert mine.overlap["greedy"].rows == whole.overlap["greedy"].rows
    parted.report(tmp_path / "report.html")
    assert mine.digest in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_only_a_sample_is_learned_from_and_all_rows_are_evaluated(
    folder_of, seed, monkeypatch, mentioned
):
    monkeypatch.setattr(batches, "SAMPLE_ROWS", 800)
    folder = folder_of(table_of(seed))
    parted = PartedLog.open(folder, jobs=1)
    assert len(parted.sample) == 800
    even = np.full((len(parted), 4), 0.25)
    found = compare(parted, {"even": even}, estimators=["ips", "snips"])
    whole = compare(Log.read(folder), {"even": even}, estimators=["ips", "snips"])
    np.testing.assert_allclose(numbers(found)[:40], numbers(whole)[:40], rtol=1e-8)
    assert mentioned(found.notes, 800)
    learned = compare(parted, POLICIES, by="random")
    assert 400 < learned.overview.rows < 800


def test_a_dask_cluster_gives_the_same(folder_of, seed):
    folder = folder_of(table_of(seed, 1000))
    with LocalCluster(
        n_workers=1, processes=False, dashboard_address=":0", protocol="tcp"
    ) as cluster:
        log = PartedLog.open(folder, scheduler=cluster.scheduler_address)
        found = compare(log, {"counts": "rcp-submax"})
    check_same(found, compare(Log.read(folder), {"counts": "rcp-submax"}))


def test_a_function_that_cannot_be_sent_to_processes_is_refused(folder_of, monkeypatch):
    monkeypatch.setattr(batches, "FEWEST_PARALLEL", 0)
    log = PartedLog.open(folder_of(table_of(0, 100)), jobs=2)
    with raises_code("invalid-input"):
        compare(log, {"always": lambda columns: np.full(len(columns["age"]), "a")})


@pytest.mark.slow
def test_processes_give_the_same(folder_of, seed, monkeypatch):
    folder = folder_of(table_of(seed, 1000))
    monkeypatch.setattr(batches, "FEWEST_PARALLEL", 0)
    found = compare(PartedLog.open(folder, jobs=2), {"counts": "rcp-submax"})
    check_same(found, compare(Log.read(folder), {"counts": "rcp-submax"}))


@pytest.mark.parametrize(
    ("change", "role"),
    [
        ({"user": np.arange(ROWS) // 2}, {"cluster": "user"}),
        ({"kept": 1.0 + np.arange(ROWS) % 3}, {"weight": "kept"}),
        ({"before": np.sin(np.arange(ROWS))}, {"covariate": "before"}),
        ({"propensity": [None, *[0.4] * (ROWS - 1)]}, {}),
        ({"action_title": ["x", "y", "z"] * 400, "action_size": ["s", "l"] * 600}, {}),
        ({"price": np.sin(np.arange(ROWS)) ** 2}, {"action": ["price"]}),
    ],
    ids=["clusters", "samples", "covariates", "no propensity", "slots", "intervals"],
)
@pytest.mark.parametrize("interval", ["gamma", "bootstrap", "sequential"])
def test_every_kind_of_log_is_read_in_parts(folder_of, seed, change, role, interval):
    table = {**table_of(seed), **change}
    if not {"action_title", "price"}.isdisjoint(table):
        del table["action"]
    options = {"actions": {"price": (0.0, 1.0)}} if "price" in table else {}
    folder = folder_of(table)
    log, parted = (read(folder, columns=role, **options) for read in (Log.read, PartedLog.open))
    policies = ["random"] if "price" in table else ["random", "linucb"]
    # Draws from a policy of real numbers differ between batches.
    estimators = {"estimators": ["ips", "snips", "clipped"]} if "price" in table else {}
    parts, whole = (
        compare(one, policies, interval=interval, slices=["country"], **estimators)
        for one in (parted, log)
    )
    check_same(parts, whole)
    for one, other in zip(parts.slice_rows(), whole.slice_rows(), strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-6)
        assert one["high"] == pytest.approx(other["high"], rel=1e-2)


def test_counts_and_several_rewards_are_read_in_parts(folder_of, seed):
    table = table_of(seed)
    table |= {"n": 1 + np.arange(ROWS) % 4, "k": (table["reward"] * (np.arange(ROWS) % 2)) * 1.0}
    policies, options = {"even": np.full((ROWS, 4), 0.25)}, {"estimators": ["ips", "snips"]}
    for columns in ({"count": "n"}, {"reward": ["reward", "k"]}):
        folder = folder_of(table)
        log, parted = (read(folder, columns=columns) for read in (Log.read, PartedLog.open))
        if "count" in columns:
            check_same(compare(parted, policies, **options), compare(log, policies, **options))
        else:
            both = {"both": {"reward": 1, "k": 5}}
            parts, whole = (
                compare_rewards(one, policies, combinations=both, **options).comparisons
                for one in (parted, log)
            )
            for name in ("reward", "k", "both"):
                check_same(parts[name], whole[name])


def test_many_clusters_are_put_together_at_random(folder_of, seed, monkeypatch):
    monkeypatch.setattr(batches, "MOST_CLUSTERS", 200)
    table = {**table_of(seed), "user": [f"u{number // 2}" for number in range(ROWS)]}
    folder, columns = folder_of(table), {"cluster": "user"}
    policies, options = {"even": np.full((ROWS, 4), 0.25)}, {"estimators": ["ips"]}
    parts, whole = (
        compare(read(folder, columns=columns), policies, interval="normal", **options)
        for read in (PartedLog.open, Log.read)
    )
    one, other = (found.find("even", "ips") for found in (parts, whole))
    assert one.value == pytest.approx(other.value)
    # A standard error from 200 groups is known to 1 / √400.
    widths = [found.interval.high - found.interval.low for found in (one, other)]
    assert widths[0] == pytest.approx(widths[1], rel=5 / np.sqrt(400))


@pytest.mark.parametrize(
    ("change", "role", "code"),
    [
        ({"visit": np.arange(100) // 2}, {"session": "visit"}, "needs-memory"),
        ({"at": np.arange(100)[::-1].copy()}, {"time": "at"}, "invalid-input"),
    ],
)
def test_what_cannot_be_read_in_parts_is_refused(folder_of, change, role, code, monkeypatch):
    monkeypatch.setattr(batches, "PART_ROWS", 20)
    folder = folder_of({**table_of(0, 100), **change})
    with raises_code(code):
        compare(PartedLog.open(folder, columns=role, jobs=1), ["random"])


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_text_is_read_in_parts_with_the_results_of_a_log_in_memory(ending, tmp_path, seed):
    path, table = tmp_path / f"log.{ending}", pa.table(table_of(seed)).to_pandas()
    table["time"] = range(ROWS)
    if ending == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_json(path, orient="records", lines=True)
    options = {"estimators": ["ips", "snips", "dr"], "seed": seed}
    parts = PartedLog.open(path, jobs=1)
    assert parts.schema == Log.read(path).schema
    check_same(compare(parts, POLICIES, **options), compare(Log.read(path), POLICIES, **options))
    if ending == "csv":
        path.write_text(path.read_text() + "a,1,0.5,fr,old,9\na,1\n")
        with raises_code("invalid-input"):
            PartedLog.open(path, jobs=1)
        assert len(PartedLog.open(path, jobs=1, skip_bad_rows=True)) == ROWS


def test_text_on_a_cluster_and_damaged_files_are_refused(tmp_path):
    (tmp_path / "log.csv").write_text("action,reward\na,1\n", encoding="utf-8")
    with raises_code("not-parquet"):
        PartedLog.open(tmp_path / "log.csv", scheduler="tcp://127.0.0.1:1")
    (tmp_path / "log.parquet").write_bytes(b"PAR1 and no more")
    with raises_code("invalid-input"):
        PartedLog.open(tmp_path / "log.parquet")
    with raises_code("invalid-input"):
        PartedLog.open(tmp_path / "other.parquet")
