from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest
from builtin_examples import examples_of
from pyarrow import parquet
from refusals import raises_code

from submax.core import disk
from submax.evaluation import Log, compare, compare_rewards, evaluator, reading
from submax.evaluation.estimators import NEEDS, OFF_POLICY

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
    """Logs of a few files have parts on disk, and batches for several threads."""
    monkeypatch.setattr(evaluator, "available_cores", lambda: 4)
    monkeypatch.setattr(disk, "PIECE_ROWS", 250)
    monkeypatch.setattr(disk, "IN_MEMORY", 300)
    monkeypatch.setattr(evaluator, "BATCH_ROWS", 250)


@pytest.fixture
def compared(monkeypatch):
    def in_batches(log, *arguments, compare=compare, **options):
        """The comparison of a log that counts as long, so it is evaluated in batches."""
        with monkeypatch.context() as patched:
            patched.setattr(evaluator, "WHOLE_ROWS", 0)
            return compare(log, *arguments, **options)

    return in_batches


def on_disk(path, **options):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "MOST_IN_MEMORY", 0)
        return Log.read(path, **options)


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
    assert one.digest == other.digest
    assert (*one.rewards, *one.propensities) == pytest.approx((*other.rewards, *other.propensities))
    for first, second in zip(one.actions, other.actions, strict=True):
        assert first[:3] == second[:3]
        assert first.z == pytest.approx(second.z)


@pytest.fixture(scope="module")
def cluster():
    """The address of a Dask scheduler and its worker, which are here and get everything by TCP."""
    from distributed import LocalCluster

    options = {"processes": False, "protocol": "tcp", "host": "127.0.0.1"}
    # Two clusters with the same port for their pages would warn.
    options["dashboard_address"] = "127.0.0.1:0"
    with LocalCluster(n_workers=1, **options) as cluster:
        yield cluster.scheduler_address


@pytest.mark.slow
def test_a_cluster_gives_the_results_of_threads(cluster, compared, folder_of, seed):
    path, given = folder_of(table_of(seed)), np.random.default_rng(seed).dirichlet(np.ones(4), ROWS)
    policies = {"greedy": "linucb@greedy", "given": given}
    policies["rule"] = lambda rows: np.where(rows["age"] > 0, "a", "b")
    here = compared(Log.read(path), policies, slices=["country"])
    for log in (Log.read(path), on_disk(path)):
        check_same(compared(log, policies, slices=["country"], scheduler=cluster), here)
    with raises_code("invalid-input"):
        compared(Log.read(path), policies, scheduler="tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("interval", "baseline"),
    [
        ("gamma", "logging policy"),
        ("normal", "greedy"),
    ],
)
def test_sums_over_batches_give_the_results_of_one_batch(
    folder_of, seed, interval, baseline, compared
):
    table = table_of(seed)
    # Some values occur in one file only.
    table["context_country"][-50:] = "us"
    table["action"][-60:-40] = "0"
    given = np.random.default_rng(seed).dirichlet(np.ones(5), size=ROWS)
    table |= {f"prob_{name}": given[:, place] for place, name in enumerate("0abcd")}
    folder, columns = folder_of(table), {"probability": "prob_*"}
    log, disk = (read(folder, columns=columns) for read in (Log.read, on_disk))
    assert (disk.schema, disk.fingerprint) == (log.schema, log.fingerprint)
    policies = {**POLICIES, "columns": "columns=prob_*"}
    options = {"interval": interval, "baseline": baseline}
    if interval == "normal":
        options["by"] = "random"
        # All estimators whose terms can be added up, with thresholds that are given or chosen.
        options["estimators"] = [
            {"kind": one.short, **asdict(one)}
            for one in examples_of(OFF_POLICY)
            if not NEEDS.keys() & one.relies_on
        ]
    whole = compare(log, policies, **options)
    check_same(compared(disk, policies, **options), whole)
    check_same(compared(log, policies, **options), whole)


def test_the_size_of_batches_and_large_rewards_do_not_matter(
    folder_of, seed, monkeypatch, compared
):
    folder = folder_of(table_of(seed, rewards="continuous"))
    found = []
    for rows in (137, 100_000):
        monkeypatch.setattr(disk, "PIECE_ROWS", rows)
        monkeypatch.setattr(evaluator, "BATCH_ROWS", rows)
        found.append(compared(on_disk(folder), POLICIES))
    check_same(*found)
    whole = compare(Log.read(folder), POLICIES)
    for one, other in zip(found[0].estimates, whole.estimates, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-9)
        assert one.interval == pytest.approx(other.interval, rel=1e-6)


def test_models_are_fitted_to_a_sample_and_all_rows_are_evaluated(
    folder_of, seed, monkeypatch, mentioned, compared
):
    monkeypatch.setattr(evaluator, "SAMPLE_ROWS", 800)
    log = on_disk(folder_of(table_of(seed)))
    even = np.full((len(log), 4), 0.25)
    found = compared(log, {"even": even}, estimators=["ips", "snips"])
    whole = compare(log, {"even": even}, estimators=["ips", "snips"])
    np.testing.assert_allclose(numbers(found)[:40], numbers(whole)[:40], rtol=1e-8)
    assert mentioned(found.notes, 800)
    assert compared(log, POLICIES, by="random").estimates[0].diagnostics.rows == ROWS // 2


KINDS = {
    "clusters": ({"user": np.arange(ROWS) // 2}, {"cluster": "user"}),
    "samples": ({"kept": 1.0 + np.arange(ROWS) % 3}, {"weight": "kept"}),
    "covariates": ({"before": np.sin(np.arange(ROWS))}, {"covariate": "before"}),
    "no propensity": ({"propensity": [None, *[0.4] * (ROWS - 1)]}, {}),
    "slots": ({"action_title": ["x", "y", "z"] * 400, "action_size": ["s", "l"] * 600}, {}),
    "intervals": ({"price": np.sin(np.arange(ROWS)) ** 2}, {"action": ["price"]}),
    "sessions": ({"visit": np.arange(ROWS) // 3}, {"session": "visit"}),
    "times": ({"at": np.arange(ROWS) % 7}, {"time": "at"}),
}
INTERVALS = ("gamma", "normal", "sequential")


def kinds_and_intervals():
    """Every kind with one interval, clusters with each; every other pair in the soak."""
    for place, (kind, (change, role)) in enumerate(KINDS.items()):
        for interval in INTERVALS:
            first = interval == INTERVALS[place % 3] or kind == "clusters"
            marks = [] if first else [pytest.mark.soak]
            yield pytest.param(change, role, interval, id=f"{kind}, {interval}", marks=marks)


@pytest.mark.parametrize(("change", "role", "interval"), list(kinds_and_intervals()))
def test_every_kind_of_log_is_evaluated_in_batches(
    folder_of, seed, change, role, interval, compared
):
    table = {**table_of(seed), **change}
    if not {"action_title", "price"}.isdisjoint(table):
        del table["action"]
    options = {"actions": {"price": (0.0, 1.0)}} if "price" in table else {}
    folder = folder_of(table)
    log, disk = (read(folder, columns=role, **options) for read in (Log.read, on_disk))
    assert disk.fingerprint == log.fingerprint
    policies = ["random"] if "price" in table else ["random", "linucb"]
    # Draws from a policy of real numbers differ between batches.
    estimators = {"estimators": ["ips", "snips", "clipped"]} if "price" in table else {}
    options = {"interval": interval, "slices": ["country"], **estimators}
    parts, whole = compared(disk, policies, **options), compare(log, policies, **options)
    check_same(parts, whole)
    for one, other in zip(parts.rows("slices"), whole.rows("slices"), strict=True):
        assert one["value"] == pytest.approx(other["value"], rel=1e-6)
        assert one["high"] == pytest.approx(other["high"], rel=1e-2)


@pytest.mark.parametrize(
    "columns", [{"count": "n"}, {"count": "n", "successes": "s"}, {"reward": ["reward", "k"]}]
)
def test_counts_and_several_rewards_are_evaluated_in_batches(folder_of, seed, columns, compared):
    table = table_of(seed)
    table |= {"n": 1 + np.arange(ROWS) % 4, "k": (table["reward"] * (np.arange(ROWS) % 2)) * 1.0}
    table["s"] = table["n"] * table["reward"]
    policies, options = ["always=a", "random"], {"estimators": ["ips", "snips"]}
    folder = folder_of(table)
    log, disk = (read(folder, columns=columns) for read in (Log.read, on_disk))
    if "count" in columns:
        found = compared(disk, policies, by="time", **options)
        check_same(found, compare(log, policies, by="time", **options))
        return
    options |= {"combinations": {"both": {"reward": 1, "k": 5}}}
    parts = compared(disk, policies, compare=compare_rewards, **options)
    whole = compare_rewards(log, policies, **options)
    for name in ("reward", "k", "both"):
        check_same(parts[name], whole[name])


def test_many_clusters_are_put_together_at_random(folder_of, seed, monkeypatch, compared):
    monkeypatch.setattr(evaluator, "MOST_CLUSTERS", 200)
    table = {**table_of(seed), "user": [f"u{number // 2}" for number in range(ROWS)]}
    folder, columns = folder_of(table), {"cluster": "user"}
    policies = {"even": np.full((ROWS, 4), 0.25)}
    options = {"estimators": ["ips"], "interval": "normal"}
    parts = compared(on_disk(folder, columns=columns), policies, **options)
    whole = compare(Log.read(folder, columns=columns), policies, **options)
    one, other = (found.find("even", "ips") for found in (parts, whole))
    assert one.value == pytest.approx(other.value)
    # A standard error from 200 groups is known to 1 / √400.
    widths = [found.interval.high - found.interval.low for found in (one, other)]
    assert widths[0] == pytest.approx(widths[1], rel=5 / np.sqrt(400))


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_text_on_disk_has_the_results_of_a_log_in_memory(ending, tmp_path, seed, compared):
    path, table = tmp_path / f"log.{ending}", pa.table(table_of(seed)).to_pandas()
    table["time"], table["id"] = range(ROWS), range(ROWS)
    if ending == "csv":
        table.to_csv(path, index=False)
    else:
        table.to_json(path, orient="records", lines=True)
    options = {"estimators": ["ips", "snips", "dr"], "seed": seed}
    parts = on_disk(path)
    assert parts.schema == Log.read(path).schema
    check_same(compared(parts, POLICIES, **options), compare(Log.read(path), POLICIES, **options))
    if ending == "csv":
        path.write_text(path.read_text() + "a,1,0.5,fr,old,9,9\na,1\n")
        with raises_code("invalid-input"):
            on_disk(path)
        log = on_disk(path, skip_bad_rows=True)
        assert (len(log), log.notes) == (ROWS, Log.read(path, skip_bad_rows=True).notes)


def test_the_folder_of_a_log_is_removed_with_it(folder_of):
    log = on_disk(folder_of(table_of(0, 100)))
    folder = log.folder.path
    part = log.rows(np.arange(100) % 2 == 0)
    del log
    assert folder.exists()
    del part
    assert not folder.exists()
