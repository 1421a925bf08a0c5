import csv
import json
import os
import re
import subprocess
import sys

import pytest

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
kind = "batch-flush"
size = 10
[define]
softmax = { kind = "softmax", hidden = 4, training = { steps = 5, batch = 8 } }
"""
WITHOUT_JAX = """
import importlib.util
import json
import sys
from concurrent.futures import ThreadPoolExecutor

find = importlib.util.find_spec


def hidden(name, *others):
    return None if name.partition(".")[0] == "jax" else find(name, *others)


importlib.util.find_spec = hidden
sys.modules["jax"] = None
from click.testing import CliRunner
from submax.cli import main
from submax.cli.running import run

# Workers would be processes that find jax.
run.local_executor = lambda jobs, meter=None: ThreadPoolExecutor(1)
ends = [CliRunner().invoke(main, words) for words in json.loads(sys.argv[1])]
print(json.dumps([(end.exit_code, end.stderr) for end in ends]))
"""
"""Runs commands one after the other, and prints how each of them ended."""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def python(code, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **environment},
    )


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_a_network_of_the_users_own_is_trained(
    run_with_workers, run_here, summary, tiny, tmp_path, capfd
):
    out = tmp_path / "out"
    options = ("--device", "cpu", "--jobs", 1, "--no-figures", "--out", out)
    done = run_with_workers("simulate", tiny, *options)
    assert done.returncode == 0, done.stderr
    assert [row["policy"] for row in summary(out / "tiny")] == ["random", "tiny"]
    # The second one is what the worker wrote.
    assert "Warning" not in done.stderr + capfd.readouterr().err
    again = run_here("simulate", tiny, "--no-figures", "--out", out)
    assert "2 of 2 cells are already finished" in again.stdout


@pytest.mark.slow
def test_a_gpu_that_is_not_there_is_refused(tiny, tmp_path):
    code = "import sys; from submax.cli import main; main(sys.argv[1:])"
    out = tmp_path / "out"
    done = python(code, "simulate", tiny, "--device", "gpu", "--out", out, JAX_PLATFORMS="cpu")
    assert done.returncode == 2
    (sentence,) = done.stderr.strip().splitlines()
    assert sentence.startswith("Error: JAX sees no GPU here, only ")
    assert sentence.endswith("leave --device out, or use --device cpu")
    assert not out.exists()


@pytest.mark.slow
def test_without_jax_the_extra_is_named_and_what_needs_no_network_runs(tiny, tmp_path):
    refused = [("--out", tmp_path / "out"), ("--device", "gpu", "--out", tmp_path / "out")]
    random = ("--only", "policy=random", "--no-figures", "--out", tmp_path / "random")
    commands = [["simulate", tiny, *options] for options in (*refused, random)]
    done = python(WITHOUT_JAX, json.dumps(commands, default=str))
    assert done.returncode == 0, done.stderr
    *ends, (status, errors) = json.loads(done.stdout)
    assert len(ends) == len(refused)
    for number, sentence in ends:
        assert number == 2, sentence
        assert len(sentence.strip().splitlines()) == 1
        assert sentence.startswith("Error: ")
        assert 'needs jax, not installed here: pip install "submax[neural]"' in sentence
    assert not (tmp_path / "out").exists()
    assert status == 0, errors
    rows = rows_of(tmp_path / "random" / "tiny" / "summary.csv")
    assert [row["policy"] for row in rows] == ["random"]


def test_tabular_policies_leave_jax_alone():
    code = """
import sys
import tempfile
from pathlib import Path
import numpy as np
import submax
from submax.policies import make_policy, presets
from submax.simulation.running.result_table import ResultTable, write_table

make_policy("rcp-adaptive")
assert "submax.policies.linear.linucb" not in sys.modules, "other policies were imported"
assert len(presets()) > 20
parts = {f"scipy.{one}" for one in ("linalg", "optimize", "sparse", "special", "stats")}
loaded = parts & set(sys.modules)
assert not loaded, f"{loaded} were imported, which takes as long as all the rest"
for name in ("rcp-submax", "linucb", "hill-climbing-thompson"):
    submax.simulate(submax.Bernoulli(3), make_policy(name), observations=20, replicas=2)
with tempfile.TemporaryDirectory() as folder:
    write_table(Path(folder), "finals", [{"policy": "a", "arms": 3, "regret": np.ones(2)}])
    assert ResultTable.read(Path(folder), "finals")["regret"].tolist() == [1, 1]
heavy = {"pandas", "jax", "equinox", "optax", "safetensors", "scipy.stats"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_a_wrong_device_is_refused(run_here, tiny, tmp_path):
    done = run_here("simulate", tiny, "--device", "tpu", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "'tpu'" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered")
def test_a_quick_look_at_section_42(run_here, summary, tmp_path):
    done = run_here(
        "reproduce", "contextual", "--quick", "--only", "policy=random", "--only", "policy=linucb",
        "--out", tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    directory = tmp_path / "contextual"
    rows = summary(directory)
    assert [(row["shift"], row["policy"]) for row in rows] == [
        (shift, policy) for shift in ("0", "-2", "-4") for policy in ("random", "linucb")
    ]
    replicas = rows[0]["replicas"]
    assert f"quick look: {replicas} replicas" in done.stdout
    calibration = {row["where"]: row for row in rows_of(directory / "calibration.csv")}
    paper = {where: float(row["paper"]) for where, row in calibration.items()}
    assert paper == {"shift=0": 0.501, "shift=-2": 0.123, "shift=-4": 0.0185}
    random = {row["shift"]: row for row in rows if row["policy"] == "random"}
    for shift, row in random.items():
        mean = float(row["final_reward_mean"]) / int(row["observations"])
        assert float(calibration[f"shift={shift}"]["mean"]) == pytest.approx(mean)
    for number in ("0.5010", "0.1230", "0.0185"):
        assert number in done.stdout
    # No statement of the section is about these two policies alone.
    assert not (directory / "statements.csv").exists()
    assert "not run" in done.stdout
    panels = [f"panel-shift={s}" for s in (0, -2, -4)]
    together = ["varying-shift", "all-configurations"]
    names = [*panels, *together, *(f"paper-{name}" for name in together)]
    figures = {path.name for path in (directory / "figures").iterdir()} - {"drawn.json"}
    assert figures == {f"{name}.{ending}" for name in names for ending in ("png", "pdf")}
    assert re.sub(r"\s", "", str(directory / "figures")) in re.sub(r"\s", "", done.stdout)


@pytest.mark.slow
def test_a_quick_look_at_section_43(run_here, summary, tmp_path):
    done = run_here(
        "reproduce", "combinatorial", "--quick", "--only", "policy=random", "--replicas", 2,
        "--no-figures", "--out", tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    directory = tmp_path / "combinatorial"
    (row,) = summary(directory)
    assert (row["sizes"], row["replicas"], row["policy"]) == ("2x4x8x16x32", "2", "random")
    assert "quick look: 2 replicas" in done.stdout
    (calibration,) = rows_of(directory / "calibration.csv")
    assert (calibration["where"], float(calibration["paper"])) == ("shift=-3", 0.0483)
    assert "0.0483" in done.stdout
    assert "Final reward" in done.stdout
    assert not (directory / "statements.csv").exists()
