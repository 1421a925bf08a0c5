import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

from submax.cli import main
from submax.experiments.specification import (
    beyond_experiments,
    paper_experiments,
    rival_experiments,
)

CELLS = 28
"""Of the small run that most tests have in common."""
COLUMNS = [
    "arms",
    "alpha",
    "beta",
    "delay",
    "policy",
    "replicas",
    "observations",
    "final_mean",
    "final_standard_error",
    "final_q025",
    "final_q975",
    "final_reward_mean",
    "final_reward_standard_error",
    "fallbacks",
]

together = pytest.mark.xdist_group("bernoulli")
"""Tests that share the results of the small run, in one process."""


@pytest.mark.slow
def test_illustration_summary(run_here, summary, tmp_path):
    done = run_here("reproduce", "illustration", "--replicas", 200, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    rows = {row["policy"]: row for row in summary(tmp_path / "illustration")}
    assert list(rows["random"]) == ["policy", "expected_reward", "standard_error", "environments"]
    expected = {name: float(row["expected_reward"]) for name, row in rows.items()}
    assert expected["rcp-negative"] < expected["random"] < expected["rcp-optimistic"]
    assert expected["rcp-optimistic"] <= expected["rcp-optimized"] < expected["rcp-submax"]
    assert (tmp_path / "illustration" / "figures" / "illustration.png").stat().st_size > 10_000


@pytest.mark.slow
@together
def test_number_of_jobs_does_not_change_results(run_with_workers, small, whole, summary, tmp_path):
    two = run_with_workers(*small, "--jobs", 2, "--out", tmp_path)
    assert two.returncode == 0, two.stderr
    assert len(whole) == CELLS
    assert summary(tmp_path / "bernoulli") == whole


PARTS = ("ucb1", "rcp-submax")
PART = (
    *("reproduce", "bernoulli", "--only", "beta=9", "--only", "delay=1000"),
    *("--replicas", "4", "--no-figures"),
)
"""Three numbers of arms, one of them also in the small run."""


@pytest.fixture(scope="module")
def parts(run_here, tmp_path_factory):
    """A directory into which two policies were run, one after the other, without figures.

    With it comes what the last command printed.
    """
    out = tmp_path_factory.mktemp("parts")
    for policy in PARTS:
        done = run_here(*PART, "--only", f"policy={policy}", "--out", out)
        assert done.returncode == 0, done.stderr
    return out / "bernoulli", done.stdout


@pytest.mark.slow
@together
def test_bernoulli_writes_everything_it_promises(summary, parts):
    directory, said = parts
    rows = summary(directory)
    assert list(rows[0]) == COLUMNS
    assert [(row["arms"], row["policy"]) for row in rows] == [
        (arms, policy) for arms in ("10", "100", "500") for policy in PARTS
    ]
    assert {row["observations"] for row in rows} == {"5000"}
    curves = pq.read_table(directory / "results.parquet")
    assert curves.num_rows == 6 * 500
    finals = pq.read_table(directory / "finals.parquet").to_pylist()
    first = [one["regret"] for one in finals if one["arms"] == 10 and one["policy"] == "ucb1"]
    assert len(first) == 4
    assert float(rows[0]["final_mean"]) == pytest.approx(sum(first) / 4, rel=1e-12)
    assert (directory / "manifest.json").is_file()
    assert "Final regret" in said
    assert "not run" in said


@pytest.mark.slow
@together
def test_parts_add_up_in_one_directory_and_are_the_same_as_together(whole, summary, parts):
    wanted = [row for row in whole if row["policy"] in PARTS and row["delay"] == "1000"]
    assert [row["policy"] for row in wanted] == [*PARTS]
    assert [row for row in summary(parts[0]) if row["arms"] == "10"] == wanted


@pytest.mark.slow
@together
def test_another_seed_changes_results(run_here, small, whole, summary, tmp_path):
    options = ("--only", "policy=ucb1", "--seed", 1, "--out", tmp_path)
    assert run_here(*small, *options).returncode == 0
    found = summary(tmp_path / "bernoulli")
    expected = [row for row in whole if row["policy"] == "ucb1"]
    assert [row["delay"] for row in found] == [row["delay"] for row in expected]
    for one, other in zip(found, expected, strict=True):
        assert one["final_mean"] != other["final_mean"]


@pytest.mark.slow
@together
def test_killed_run_ends_its_workers_and_goes_on_without_repeating_or_losing_a_cell(
    run_here, start, small, whole, summary, wait_for_cells, tmp_path
):
    directory = tmp_path / "bernoulli"
    process = start(*small, "--jobs", 2, "--out", tmp_path)
    wait_for_cells(directory, 5)
    workers = _children(process.pid)
    process.kill()
    process.communicate(timeout=60)
    assert workers
    assert _all_gone(workers)
    kept = {path: path.stat().st_mtime_ns for path in (directory / "cells").glob("*.npz")}
    assert 5 <= len(kept) < CELLS
    plotted = run_here("plot", directory)
    assert plotted.returncode == 2
    assert "is not finished" in plotted.stderr
    again = run_here(*small, "--out", tmp_path)
    assert again.returncode == 0
    assert f"{len(kept)} of {CELLS} cells are already finished" in " ".join(again.stdout.split())
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert summary(directory) == whole


@pytest.mark.slow
@pytest.mark.parametrize(("number", "jobs"), [(signal.SIGINT, 2), (signal.SIGTERM, 1)])
def test_interrupt_stops_cleanly(start, small, wait_for_cells, tmp_path, number, jobs):
    process = start(*small, "--jobs", jobs, "--out", tmp_path)
    wait_for_cells(tmp_path / "bernoulli", 3)
    workers = _children(process.pid)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "same command again" in errors
    assert "Traceback" not in errors
    assert workers
    assert _all_gone(workers)


def test_help_imports_nothing_heavy():
    code = (
        "import sys, submax, submax.cli; "
        "heavy = {'numpy', 'scipy', 'matplotlib', 'pyarrow', 'rich', 'msgspec', 'distributed'}; "
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_changed_code_of_the_users_own_is_run_again(run, run_here, summary, tmp_path):
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "experiments.md"
    blocks = guide.read_text(encoding="utf-8").split("```")
    (code,) = [block for block in blocks if block.startswith("python\n# first_arm.py")]
    (tmp_path / "own.toml").write_text(
        'observations = 50\npolicies = [{ kind = "first_arm.py:FirstArm", name = "../own" }]\n'
        '[environment]\nkind = "bernoulli"\narms = 3\n'
    )
    results = []
    # The second time in processes of its own, whose worker imports the class.
    for version, command in ((code, run_here), (code.replace("[..., 0]", "[..., -1]"), run)):
        (tmp_path / "first_arm.py").write_text(version.removeprefix("python\n"))
        done = command(
            "simulate",
            tmp_path / "own.toml",
            "--replicas",
            5,
            "--jobs",
            1,
            "--no-figures",
            "--out",
            tmp_path / "out",
        )
        assert done.returncode == 0, done.stderr
        results.append(summary(tmp_path / "out" / "own"))
    assert results[0] != results[1]
    written = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert written == {"own.toml", "first_arm.py", "out"}
    (tmp_path / "first_arm.py").unlink()
    assert run_here("plot", tmp_path / "out" / "own").returncode == 0


@pytest.mark.slow
def test_only_leaves_out_experiments_without_a_match(run_here, tmp_path):
    done = run_here(
        "reproduce", "all", "--only", "arms=100", "--only", "beta=9", "--only", "delay=1000",
        "--only", "policy=rcp-submax", "--replicas", 1, "--no-figures", "--out", tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "illustration is left out" in done.stdout
    assert not (tmp_path / "bernoulli" / "figures").exists()
    assert f"to draw their figures: submax plot {tmp_path / 'bernoulli'}" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"bernoulli"}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["all"], paper_experiments()),
        (["beyond"], beyond_experiments()),
        (["rivals"], rival_experiments()),
        (["ratings", "beyond", "bernoulli"], ["ratings", *beyond_experiments(), "bernoulli"]),
        (["all", "beyond", "all"], [*paper_experiments(), *beyond_experiments()]),
    ],
    ids=" ".join,
)
def test_all_and_beyond_stand_for_their_experiments_each_once(names, expected, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "submax.cli.running.run.run_experiments", lambda found, options: asked.extend(found)
    )
    assert CliRunner().invoke(main, ["reproduce", *names]).exit_code == 0
    assert [one.name for one in asked] == list(dict.fromkeys(expected))


@pytest.mark.parametrize("group", ["all", "beyond"])
def test_what_no_experiment_of_a_group_has_is_refused(group, tmp_path):
    out = tmp_path / "out"
    done = CliRunner().invoke(
        main, ["reproduce", group, "--only", "policy=ucb9", "--out", str(out)]
    )
    assert done.exit_code == 2
    assert "no configuration has policy=ucb9" in done.stderr
    assert not out.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered")
def test_experiments_beyond_the_paper_run_by_their_names(run_here, summary, tmp_path):
    done = run_here(
        "reproduce", "ratings", "gaussian", "--replicas", 2, "--only", "arms=5", "--out", tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"ratings", "gaussian"}
    for name, policies in (("ratings", 10), ("gaussian", 9)):
        rows = summary(tmp_path / name)
        assert len(rows) == policies
        assert {row["arms"] for row in rows} == {"5"}
        assert all(float(row["final_mean"]) >= 0 for row in rows)
        assert list((tmp_path / name / "figures").glob("*.png"))
    assert "Ratings from 1 to 5" in done.stdout
    assert "Continuous rewards: Gaussian arms" in done.stdout


RENDERED = re.compile(r"^panel-arms=10\.|varying-arms\.")
"""A configuration alone, and several side by side in both styles."""


@pytest.mark.slow
@together
def test_figures_are_drawn_without_running(run_here, parts, monkeypatch):
    directory, _ = parts
    render = Figure.savefig

    def savefig(figure, path, **options):
        # One figure of each kind is rendered, which takes longer than all the rest.
        render(figure, path, **options) if RENDERED.search(path.name) else path.touch()

    monkeypatch.setattr(Figure, "savefig", savefig)
    for path in (directory / "cells").iterdir():
        os.utime(path, (1, 1))
    assert run_here("plot", directory).returncode == 0
    figures = {path.name for path in (directory / "figures").iterdir()}
    assert {"all-configurations.png", "varying-arms.pdf", "paper-varying-arms.png"} <= figures
    rendered = [path for path in (directory / "figures").iterdir() if RENDERED.search(path.name)]
    assert len(rendered) == 6
    assert all(path.stat().st_size > 5_000 for path in rendered)
    assert all(path.stat().st_mtime == 1 for path in (directory / "cells").iterdir())


@pytest.mark.slow
def test_an_offline_experiment_writes_tables_and_figures_and_goes_on(run_here, summary, tmp_path):
    rows = [f"{row % 3 + row / 100:.2f},{'abc'[row % 3]}" for row in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,label", *rows]))
    (tmp_path / "tiny.toml").write_text(
        'experiment = "offline"\nobservations = 400\nreplicas = 2\n'
        'policies = ["random", "linucb"]\n'
        '[environment]\nkind = "classification"\nfile = "rows.csv"\n'
    )
    command = ("simulate", tmp_path / "tiny.toml", "--out", tmp_path / "out")
    done = run_here(*command)
    assert done.returncode == 0, done.stderr
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
    assert "root mean squared error" in done.stdout
    assert "value of the log" in done.stdout

    kept, lost = sorted((directory / "cells").iterdir())
    os.utime(kept, (1, 1))
    lost.unlink()
    again = run_here(*command)
    assert again.returncode == 0, again.stderr
    assert "1 of 2 cells are already finished" in again.stdout
    assert kept.stat().st_mtime == 1
    assert summary(directory) == found

    for path in figures:
        path.unlink()
    drawn = run_here("plot", directory)
    assert drawn.returncode == 0, drawn.stderr
    assert all(path.stat().st_size > 1000 for path in figures)
    assert "root mean squared error" in drawn.stdout


def _children(parent: int) -> list[int]:
    """Processes below a process, found in /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found


def _all_gone(processes: list[int]) -> bool:
    for _ in range(1000):
        if not any(_alive(process) for process in processes):
            return True
        time.sleep(0.01)
    return False


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
