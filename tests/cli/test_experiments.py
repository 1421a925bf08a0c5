"""The commands reproduce, simulate and plot."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pyarrow.parquet as pq
import pytest
from waiting import wait_until

from submax.core import optional as extras
from submax.simulation.experiment import experiment_groups

from .conftest import RENDERED, done, first_arm, invoke, invoke_with_workers, refused, summary

POLICIES = (
    *("random", "epsilon-greedy-0.01", "epsilon-greedy-0.05", "epsilon-greedy-0.1", "ucb1"),
    *("thompson-1-1", "rcp-marginalized", "rcp-optimistic", "rcp-optimized", "rcp-submax"),
)
SMALL = (
    *("reproduce", "bernoulli", "--only", "arms=10", "--only", "beta=9"),
    *("--only", "delay=500", "--only", "delay=1000", "--replicas", "4", "--no-figures"),
    *(word for policy in POLICIES for word in ("--only", f"policy={policy}")),
)
"""A run that most tests have in common. Figures take longer than the cells."""
CELLS = 2 * len(POLICIES)
COLUMNS = [
    "arms", "alpha", "beta", "delay", "policy", "replicas", "observations",
    "final_mean", "final_standard_error", "final_q025", "final_q975",
    "final_reward_mean", "final_reward_standard_error", "fallbacks",
]  # fmt: skip

GROUPS = experiment_groups()
together = pytest.mark.xdist_group("bernoulli")
"""Tests that share the results of the small run, in one process."""


def start(*arguments) -> "subprocess.Popen[str]":
    """Start a command in a process of its own, as people start it."""
    command = [sys.executable, "-m", "submax", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)


def wait_for_cells(directory: Path, count: int) -> list[Path]:
    wait_until(lambda: len([*(directory / "cells").glob("*.msgpack")]) >= count)
    return sorted((directory / "cells").glob("*.msgpack"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What all cells come to if they run one after the other in one process."""
    out = tmp_path_factory.mktemp("whole")
    done(*SMALL, "--out", out)
    return summary(out / "bernoulli")


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered")
def test_illustration_summary(tmp_path):
    done("reproduce", "illustration", "--replicas", 20, "--out", tmp_path)
    rows = {row["policy"]: row for row in summary(tmp_path / "illustration")}
    assert list(rows["random"]) == ["policy", "expected_reward", "standard_error", "environments"]
    assert {"random", "rcp-negative", "rcp-optimistic", "rcp-optimized", "rcp-submax"} <= set(rows)
    assert {row["environments"] for row in rows.values()} == {"20"}
    assert (tmp_path / "illustration" / "figures" / "illustration.png").exists()


PARTS = ("ucb1", "rcp-submax")
PART = (
    *("reproduce", "bernoulli", "--only", "beta=9", "--only", "delay=1000"),
    *("--replicas", "4", "--no-figures"),
)
"""Three numbers of arms, one of them also in the small run."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A directory into which two policies were run, one after the other, without figures."""
    out = tmp_path_factory.mktemp("parts")
    for policy in PARTS:
        done(*PART, "--only", f"policy={policy}", "--out", out)
    return out / "bernoulli"


@together
def test_bernoulli_writes_everything_it_promises(parts):
    rows = summary(parts)
    assert list(rows[0]) == COLUMNS
    assert [(row["arms"], row["policy"]) for row in rows] == [
        (arms, policy) for arms in ("10", "100", "500") for policy in PARTS
    ]
    assert {row["observations"] for row in rows} == {"5000"}
    curves = pq.read_table(parts / "results.parquet")
    assert curves.num_rows == 6 * 500
    finals = pq.read_table(parts / "finals.parquet").to_pylist()
    first = [one["regret"] for one in finals if one["arms"] == 10 and one["policy"] == "ucb1"]
    assert len(first) == 4
    assert float(rows[0]["final_mean"]) == pytest.approx(sum(first) / 4, rel=1e-12)
    assert (parts / "manifest.json").is_file()


@together
def test_parts_add_up_in_one_directory_and_are_the_same_as_together(whole, parts):
    wanted = [row for row in whole if row["policy"] in PARTS and row["delay"] == "1000"]
    assert [row["policy"] for row in wanted] == [*PARTS]
    assert [row for row in summary(parts) if row["arms"] == "10"] == wanted


@together
@pytest.mark.usefixtures("unrendered")
def test_figures_are_drawn_without_running(parts):
    for path in (parts / "cells").iterdir():
        os.utime(path, (1, 1))
    assert "allowed: rcp-submax, ucb1" in refused("plot", parts, "--policy", "ucb2")
    done("plot", parts)
    figures = {path.name for path in (parts / "figures").iterdir()}
    assert {"all-configurations.png", "varying-arms.pdf", "paper-varying-arms.png"} <= figures
    assert (parts / "figures" / RENDERED).stat().st_size > 5_000
    assert all(path.stat().st_mtime == 1 for path in (parts / "cells").iterdir())


@together
def test_killed_run_ends_its_workers_and_goes_on_without_repeating_or_losing_a_cell(
    whole, tmp_path
):
    """The cells of two workers and those of this process are the same as in one process."""
    directory = tmp_path / "bernoulli"
    process = start(*SMALL, "--jobs", 2, "--out", tmp_path)
    wait_for_cells(directory, 5)
    workers = _children(process.pid)
    process.kill()
    process.communicate(timeout=300)
    assert workers
    wait_until(lambda: not any(_alive(worker) for worker in workers))
    kept = {path: path.stat().st_mtime_ns for path in (directory / "cells").glob("*.msgpack")}
    assert 5 <= len(kept) < CELLS
    refused("plot", directory)
    said = done(*SMALL, "--out", tmp_path)
    assert f"{len(kept)} of {CELLS} cells are already finished" in said
    assert said.count("cells are finished") == min(9, CELLS - len(kept) - 1)
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert len(whole) == CELLS
    assert summary(directory) == whole


WORKER = ("distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")


@pytest.fixture
def cluster():
    """The address of a scheduler with a worker, both here, and another worker's process."""
    from distributed import LocalCluster

    here = {"processes": False, "protocol": "tcp", "host": "127.0.0.1"}
    # Two clusters with the same port for their pages would warn.
    here["dashboard_address"] = "127.0.0.1:0"
    with LocalCluster(n_workers=1, threads_per_worker=1, **here) as cluster:
        command = [sys.executable, "-m", *WORKER, cluster.scheduler_address]
        second = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: len(cluster.scheduler.workers) == 2)
        yield cluster.scheduler_address, second
        second.kill()
        second.wait(timeout=300)


@together
def test_sweep_survives_a_killed_worker_with_the_same_results(cluster, whole, tmp_path):
    address, worker = cluster
    finished = []

    def kill() -> None:
        finished.extend(wait_for_cells(tmp_path / "dask" / "bernoulli", 5))
        os.kill(worker.pid, signal.SIGKILL)

    killing = Thread(target=kill)
    killing.start()
    result = invoke_with_workers(*SMALL, "--scheduler", address, "--out", tmp_path / "dask")
    killing.join()
    assert 5 <= len(finished) < CELLS
    assert result.exit_code == 0, result.stderr
    rows = summary(tmp_path / "dask" / "bernoulli")
    assert len(rows) == CELLS
    assert rows == whole


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)]
)
def test_interrupt_stops_cleanly(tmp_path, number):
    # So many replicas that the run has not ended when it is interrupted.
    process = start(*SMALL, "--replicas", 100, "--jobs", 1, "--out", tmp_path)
    wait_for_cells(tmp_path / "bernoulli", 3)
    workers = _children(process.pid)
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert workers
    wait_until(lambda: not any(_alive(worker) for worker in workers))


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered")
def test_changed_code_of_the_users_own_is_run_again(tmp_path):
    (tmp_path / "own.toml").write_text(
        'observations = 50\npolicies = [{ kind = "first_arm.py:FirstArm", name = "../own" }]\n'
        '[environment]\nkind = "bernoulli"\narms = 3\n'
    )
    options = ("--replicas", 5, "--jobs", 1, "--no-figures", "--out", tmp_path / "out")
    command = ("simulate", tmp_path / "own.toml", *options)
    (tmp_path / "first_arm.py").write_text(first_arm())
    done(*command)
    first = summary(tmp_path / "out" / "own")
    (tmp_path / "first_arm.py").write_text(first_arm().replace("[..., 0]", "[..., -1]"))
    # The second time in processes of its own, whose worker imports the class.
    process = start(*command)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert summary(tmp_path / "out" / "own") != first
    written = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert written == {"own.toml", "first_arm.py", "out"}
    (tmp_path / "first_arm.py").unlink()
    done("plot", tmp_path / "out" / "own")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["all"], GROUPS["all"]),
        (["rivals"], GROUPS["rivals"]),
        (["ratings", "beyond", "bernoulli"], ["ratings", *GROUPS["beyond"], "bernoulli"]),
        (["all", "beyond", "all"], [*GROUPS["all"], *GROUPS["beyond"]]),
    ],
    ids=" ".join,
)
def test_all_and_beyond_stand_for_their_experiments_each_once(names, expected, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "submax.cli.running.run_experiments", lambda found, **options: asked.extend(found)
    )
    done("reproduce", *names)
    assert [one.name for one in asked] == list(dict.fromkeys(expected))


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered")
def test_an_offline_experiment_writes_tables_and_figures_and_goes_on(tmp_path):
    rows = [f"{row % 3 + row / 100:.2f},{'abc'[row % 3]}" for row in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,label", *rows]))
    (tmp_path / "tiny.toml").write_text(
        'experiment = "offline"\nobservations = 400\nreplicas = 2\n'
        'policies = ["random", "linucb"]\n'
        '[environment]\nkind = "classification"\nfile = "rows.csv"\n'
    )
    command = ("simulate", tmp_path / "tiny.toml", "--out", tmp_path / "out")
    done(*command)
    directory = tmp_path / "out" / "tiny"
    figures = [directory / "figures" / f"offline.{kind}" for kind in ("pdf", "png")]
    assert sorted((directory / "figures").iterdir()) == figures
    assert {path.name for path in directory.iterdir()} == {
        "cells", "estimates.csv", "figures", "manifest.json", "summary.csv",
    }  # fmt: skip
    found = summary(directory)
    assert {(row["policy"], row["replicas"]) for row in found} == {("random", "2"), ("linucb", "2")}
    estimates = (directory / "estimates.csv").read_text(encoding="utf-8").splitlines()
    assert len(estimates) == 1 + 2 * len(found)

    kept, lost = sorted((directory / "cells").iterdir())
    os.utime(kept, (1, 1))
    lost.unlink()
    assert "1 of 2 cells" in done(*command)
    assert kept.stat().st_mtime == 1
    assert summary(directory) == found

    for path in figures:
        path.unlink()
    done("plot", directory)
    assert sorted((directory / "figures").iterdir()) == figures


def _children(parent: int) -> list[int]:
    """Processes below a process."""
    return [int(one) for one in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


TINY = """
observations = 20
replicas = 2
policies = [
    "random",
    { name = "tiny", kind = "reward-conditioned", estimator = "$softmax", strategy = "submax" },
]
[environment]
kind = "contextual"
arms = 3
dimension = 2
[delay]
kind = "batched-rewards"
size = 10
[define]
softmax = { kind = "softmax", hidden = 4, training = { steps = 5, batch = 8 } }
"""
trains = pytest.mark.xdist_group("Softmax")
"""Tests that import JAX, in one process."""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@trains
@pytest.mark.parametrize("workers", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_network_of_the_users_own_is_trained(workers, tiny, tmp_path, capfd):
    options = ("simulate", tiny, "--no-figures", "--out", tmp_path)
    result = (invoke_with_workers if workers else invoke)(*options, "--jobs", 1)
    assert result.exit_code == 0, result.stderr
    assert [row["policy"] for row in summary(tmp_path / "tiny")] == ["random", "tiny"]
    # The second one is what a worker wrote.
    assert "Warning" not in result.stderr + capfd.readouterr().err
    assert "2 of 2 cells" in done(*options)


@trains
def test_a_device_that_is_not_there_is_refused(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("jax.default_backend", lambda: "cpu")
    assert "--device" in refused("simulate", tiny, "--device", "gpu", "--out", tmp_path / "out")
    assert "'tpu'" in refused("simulate", tiny, "--device", "tpu", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_jax_the_extra_is_named_and_what_needs_no_network_runs(tiny, tmp_path, monkeypatch):
    find = extras.find_spec
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "jax" else find(name))
    for options in ((), ("--device", "gpu")):
        said = refused("simulate", tiny, *options, "--out", tmp_path / "out")
        assert '"submax[neural]" (missing-extra)' in said
    assert not (tmp_path / "out").exists()
    done("simulate", tiny, "--only", "policy=random", "--no-figures", "--out", tmp_path)
    assert [row["policy"] for row in summary(tmp_path / "tiny")] == ["random"]


def test_tabular_policies_leave_jax_alone():
    code = """
import sys
import submax.cli
heavy = {"numpy", "scipy", "matplotlib", "pyarrow", "rich", "msgspec", "distributed"}
loaded = heavy & set(sys.modules)
assert not loaded, f"{loaded} were imported for the help of the commands"

import submax
from submax.policies import make_policy, presets

make_policy("rcp-adaptive")
assert "submax.policies.linear" not in sys.modules, "other policies were imported"
assert len(presets()) > 20
parts = {f"scipy.{one}" for one in ("linalg", "optimize", "sparse", "special", "stats")}
loaded = parts & set(sys.modules)
assert not loaded, f"{loaded} were imported, which takes as long as all the rest"
for name in ("rcp-submax", "linucb", "hill-climbing-thompson"):
    submax.simulate(submax.Bernoulli(3), make_policy(name), observations=20, replicas=2)
heavy = {"pandas", "jax", "equinox", "optax", "safetensors", "scipy.stats"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered")
def test_a_quick_look_at_section_42(tmp_path):
    done(
        "reproduce", "contextual", "--quick", "--only", "policy=random", "--only", "policy=linucb",
        "--out", tmp_path,
    )  # fmt: skip
    directory = tmp_path / "contextual"
    rows = summary(directory)
    assert [(row["shift"], row["policy"]) for row in rows] == [
        (shift, policy) for shift in ("0", "-2", "-4") for policy in ("random", "linucb")
    ]
    calibration = {row["where"]: row for row in summary(directory, "calibration.csv")}
    paper = {where: float(row["paper"]) for where, row in calibration.items()}
    assert paper == {"shift=0": 0.501, "shift=-2": 0.123, "shift=-4": 0.0185}
    random = {row["shift"]: row for row in rows if row["policy"] == "random"}
    for shift, row in random.items():
        mean = float(row["final_reward_mean"]) / int(row["observations"])
        assert float(calibration[f"shift={shift}"]["mean"]) == pytest.approx(mean)
    figures = {path.name for path in (directory / "figures").iterdir()}
    assert {"panel-shift=-4.png", "varying-shift.pdf", "paired.png"} <= figures


OWN = """
observations = 20
policies = ["random"]
[environment]
kind = "bernoulli"
arms = 3
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "own.toml").write_text(OWN)
    return tmp_path / "own.toml"


def refused_with(facts, *arguments):
    """A command is refused, and the message has the names and values that help the user."""
    message = " ".join(refused(*arguments).split())
    for fact in facts:
        assert fact in message, message


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["all", "--only", "policy=ucb9"], ["policy=ucb9"]),
        (["bernoulli", "--jobs", "1", "--scheduler", "tcp://127.0.0.1:1"], ["--scheduler"]),
        ([], ["NAME"]),
    ],
)
def test_wrong_options_are_refused_and_nothing_is_written(arguments, facts, tmp_path):
    out = tmp_path / "out"
    refused_with(facts, "reproduce", *arguments, "--out", out)
    assert not out.exists()


FAULTS = [
    ("import numpy as np", "raise SystemExit(0)", ["SystemExit"]),
    ("def update", "def upgrade", ["update"]),
    ("= 1.0", "= np.nan", ["nan"]),
    ("np.zeros((len(context), 1,", "np.zeros((1, 1,", ["shape"]),
    ("arms = 3", "arms = [3, 3]", ["[environment]"]),
    ("arms = 3", "", ["'bernoulli'", "arms"]),
    ("first_arm.py:FirstArm", "mine.py:Mine", ["mine.py"]),
    ('{ kind = "first_arm.py:FirstArm" }', '"ucb1,pending=9"', ["pending"]),
    ("[environment]", "reference = { arm = 3 }\n[environment]", ["'arm'", "reference"]),
]


@pytest.mark.parametrize(("old", "new", "facts"), FAULTS)
def test_what_is_wrong_in_files_of_the_user_is_named_and_nothing_is_written(
    old, new, facts, tmp_path
):
    own = OWN.replace('["random"]', '[{ kind = "first_arm.py:FirstArm" }]')
    assert (old in own) != (old in first_arm())
    (tmp_path / "first_arm.py").write_text(first_arm().replace(old, new, 1))
    file, out = tmp_path / "own.toml", tmp_path / "out"
    file.write_text(own.replace(old, new))
    refused_with(facts, "simulate", file, "--out", out)
    assert not out.exists()


def test_policies_are_named_by_texts(file, tmp_path):
    greedy, wide = "thompson-1-1@greedy", "epsilon-greedy-0.1,epsilon=0.9"
    file.write_text(OWN.replace('["random"]', f'["{greedy}", "{wide}"]'))
    options = ("--out", tmp_path / "out", "--replicas", 2, "--jobs", 1, "--no-figures")
    done("simulate", file, "--only", f"policy={wide}", *options)
    assert [row["policy"] for row in summary(tmp_path / "out" / "own")] == [wide]
    done("simulate", file, *options)
    assert {row["policy"] for row in summary(tmp_path / "out" / "own")} == {greedy, wide}


def test_policies_that_ignore_the_context_are_named(file, tmp_path):
    text = OWN.replace('"bernoulli"', '"contextual"\ndimension = 2')
    file.write_text(text.replace('"random"', '"random", "rcp-submax", "linucb"'))
    said = done("simulate", file, "--out", tmp_path, "--replicas", 2, "--no-figures")
    assert said.startswith("own: rcp-submax ignores the context")


def test_a_directory_with_other_results_or_files_stays_as_it_is(file, tmp_path):
    (tmp_path / "files" / "own").mkdir(parents=True)
    (tmp_path / "files" / "own" / "thesis.txt").write_text("do not lose")
    refused_with(["own", "--out"], "simulate", file, "--out", tmp_path / "files")
    assert _contents(tmp_path / "files") == {"own/thesis.txt": b"do not lose"}
    done("simulate", file, "--out", tmp_path, "--replicas", 2, "--no-figures")
    before = _contents(tmp_path / "own")
    refused_with(["replicas = 2", "--out"], "simulate", file, "--out", tmp_path, "--replicas", 1)
    refused_with(["seed = 0"], "simulate", file, "--out", tmp_path, "--replicas", 2, "--seed", 9)
    assert _contents(tmp_path / "own") == before


def _contents(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }
