import csv
import subprocess
import sys

import pytest

from submax.core import optional as extras

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


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@trains
@pytest.mark.parametrize(
    "how", ["invoke", pytest.param("invoke_with_workers", marks=pytest.mark.soak)]
)
def test_a_network_of_the_users_own_is_trained(how, request, done, summary, tiny, tmp_path, capfd):
    options = ("simulate", tiny, "--no-figures", "--out", tmp_path)
    result = request.getfixturevalue(how)(*options, "--jobs", 1)
    assert result.exit_code == 0, result.stderr
    assert [row["policy"] for row in summary(tmp_path / "tiny")] == ["random", "tiny"]
    # The second one is what a worker wrote.
    assert "Warning" not in result.stderr + capfd.readouterr().err
    assert "2 of 2 cells" in done(*options)


@trains
def test_a_device_that_is_not_there_is_refused(refused, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("jax.default_backend", lambda: "cpu")
    assert "--device" in refused("simulate", tiny, "--device", "gpu", "--out", tmp_path / "out")
    assert "'tpu'" in refused("simulate", tiny, "--device", "tpu", "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_jax_the_extra_is_named_and_what_needs_no_network_runs(
    refused, done, summary, tiny, tmp_path, monkeypatch
):
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
def test_a_quick_look_at_section_42(done, summary, tmp_path):
    done(
        "reproduce", "contextual", "--quick", "--only", "policy=random", "--only", "policy=linucb",
        "--out", tmp_path,
    )  # fmt: skip
    directory = tmp_path / "contextual"
    rows = summary(directory)
    assert [(row["shift"], row["policy"]) for row in rows] == [
        (shift, policy) for shift in ("0", "-2", "-4") for policy in ("random", "linucb")
    ]
    calibration = {row["where"]: row for row in rows_of(directory / "calibration.csv")}
    paper = {where: float(row["paper"]) for where, row in calibration.items()}
    assert paper == {"shift=0": 0.501, "shift=-2": 0.123, "shift=-4": 0.0185}
    random = {row["shift"]: row for row in rows if row["policy"] == "random"}
    for shift, row in random.items():
        mean = float(row["final_reward_mean"]) / int(row["observations"])
        assert float(calibration[f"shift={shift}"]["mean"]) == pytest.approx(mean)
    figures = {path.name for path in (directory / "figures").iterdir()}
    assert {"panel-shift=-4.png", "varying-shift.pdf", "paired.png"} <= figures
