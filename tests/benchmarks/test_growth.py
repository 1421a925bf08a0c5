"""The benchmark of growth runs with a few rows, and measures what it says."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ROWS = 1200


@pytest.fixture
def steps(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from load import growth_step

    monkeypatch.setattr(growth_step, "DECISIONS", 20)
    monkeypatch.setattr(growth_step, "LONGEST_SECONDS", 0.0)
    monkeypatch.setattr(growth_step, "UPDATES", 2)
    return growth_step


@pytest.mark.slow
def test_every_step_measures_something(steps, tmp_path):
    measured = {}
    for name in ("fill", "read", "size", "compact", "update", "export", "opening"):
        log = steps.GrowingLog(tmp_path, 2)
        measured |= steps.STEPS[name](log, ROWS, "linucb")
    assert measured["filled_events"] == ROWS + ROWS // 10
    positive = {name for name, value in measured.items() if value > 0}
    assert positive >= {
        "read_events_per_s",
        "update_cpu_ms",
        "update_wall_ms",
        "longest_wait_for_lock_ms",
        "memory_mb",
        "decide_p99_ms",
        "decide_p99_updating_ms",
        "export_rows_per_s",
        "bytes_per_decision",
        "open_s",
    }
    # This policy trains no model.
    assert measured["update_training_cpu_ms"] == measured["training_mb"] == 0
    assert ("compacted_bytes_per_decision" in measured) == steps.can_compact()


def test_only_processes_that_were_started_since_count_as_children(steps):
    from load.child_processes import NewChildren

    waiting = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)"]
    with subprocess.Popen(waiting, stdout=subprocess.PIPE) as before:
        before.stdout.readline()
        children = NewChildren()
        assert (children.cpu_seconds(), children.megabytes()) == (0, 0)
        with subprocess.Popen(waiting, stdout=subprocess.PIPE) as since:
            since.stdout.readline()
            assert children.megabytes() > 1
            since.kill()
        before.kill()


def test_what_cannot_be_left_out_is_refused_with_the_words_that_can(steps, capsys):
    from live import growth

    with pytest.raises(SystemExit):
        growth.main(["--without", "updates"])
    said = capsys.readouterr().err
    assert "invalid choice: 'updates'" in said
    assert all(word in said for word in ("update", "compact", "linear (linucb)"))


def test_a_log_is_extended_and_its_decisions_mature(steps, tmp_path):
    log = steps.GrowingLog(tmp_path, 0)
    assert log.extend(500) == 550
    again = steps.GrowingLog(tmp_path, 0)
    assert (again.decisions, again.clock.now) == (500, log.clock.now)
    assert again.extend(400) == 0
    assert again.extend(700) == 220
    with again.open("random") as bandit:
        ledger = bandit.ledger()
    assert ledger.counts["decisions"] == ledger.counts["matured"] == 700
    assert ledger.counts["rewards"] == 70


@pytest.mark.parametrize("many", [50, pytest.param(2, marks=pytest.mark.slow)])
def test_rows_that_are_written_past_the_bandit_are_like_those_of_the_bandit(
    steps, monkeypatch, tmp_path, many
):
    from load import bulk_rows, growing_log
    from submax.live.log.records import DecisionMade, body_of
    from submax.live.store.sqlite_store import SQLiteStore

    # From two batches on, processes make the rows.
    monkeypatch.setattr(bulk_rows, "MANY_BATCHES", many)
    monkeypatch.setattr(growing_log, "BATCH", 30)
    log = steps.GrowingLog(tmp_path, 2)
    log.extend(75)
    store = SQLiteStore(log.path, read_only=True)
    assert list(store.damage()) == []
    events = store.read("bandit/log")
    store.close()
    assert [event.position for event in events] == list(range(3, 3 + 75 + 8))
    assert [event.kind for event in events] == 2 * (["decision"] * 30 + ["reward"] * 3) + (
        ["decision"] * 15 + ["reward"] * 2
    )
    # The bandit wrote the first batch.
    step = growing_log.BATCH_SECONDS
    first = events[0].at
    assert [event.at - first for event in events] == [0.0] * 33 + [step] * 33 + [2 * step] * 17
    made = [body_of(event, DecisionMade) for event in events if event.kind == "decision"]
    others = [msgspec.structs.replace(one, action=[0], context=[]) for one in made]
    assert others == [others[0]] * 75
    assert len({tuple(one.context) for one in made}) == 75
    rewards = [event for event in events if event.kind == "reward"]
    assert {event.body for event in rewards} == {rewards[0].body}
    assert {event.key.split()[2] for event in rewards} == {"reward"}
    by_key = {event.key: event for event in events}
    for event in rewards:
        assert event.about_position == by_key[event.about].position
        assert event.about_at == by_key[event.about].at


def test_a_log_is_extended_uniformly_also_after_a_version_was_fitted(steps, tmp_path):
    log = steps.GrowingLog(tmp_path, 2)
    log.extend(300)
    with log.open("linucb") as bandit:
        bandit.publish()
        assert bandit.refit()
        assert bandit.version == 1
    log.extend(400)
    with log.open("linucb") as bandit:
        assert bandit.version == 0
        bandit.publish()
        assert bandit.version == 1


def test_a_log_that_was_interrupted_is_begun_again(steps, tmp_path):
    log = steps.GrowingLog(tmp_path, 0)
    log.extend(100)
    (tmp_path / "progress.json").unlink()
    assert steps.GrowingLog(tmp_path, 0).extend(50) == 55


def test_results_are_appended_and_a_step_is_done_once(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from live import growth

    run, out = [], tmp_path / "growth.csv"

    def run_step(step, folder, log, cell):
        run.append((step, cell))
        return {"update_cpu_ms": 12.5} if step == "update" else {}

    monkeypatch.setattr(growth, "run_step", run_step)
    growth.run([100], tmp_path, out, ["no context"], [])
    first = len(run)
    growth.run([100], tmp_path, out, ["no context"], [])
    assert len(run) == first
    (cell,) = [cell for cell in growth.results_of(out) if cell.policy]
    assert growth.results_of(out)[cell]["update_cpu_ms"] == 12.5
    (claim,) = [claim for claim in growth.claims(growth.results_of(out)) if "update" in claim.what]
    assert claim.holds


def test_steps_that_run_at_once_have_copies_of_the_log(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from live import growth

    run, out = [], tmp_path / "growth.csv"

    def run_step(step, folder, log, cell):
        if step == "fill":
            folder.mkdir(exist_ok=True)
            (folder / "log").write_text("log")
        else:
            assert (folder / "log").read_text() == "log"
            run.append((step, cell.policy, folder))
        return {}

    monkeypatch.setattr(growth, "run_step", run_step)
    growth.run([100_001], tmp_path, out, ["20 numbers"], ["compact", "linear (linucb)"], jobs=3)
    folders = {(step, policy): folder for step, policy, folder in run}
    default = "Bayesian features (default)"
    assert set(folders) == {
        ("read", ""),
        ("size", ""),
        ("update", default),
        ("opening", ""),
        ("export", ""),
    }
    assert folders["read", ""] == folders["size", ""]
    assert folders["update", default] == folders["opening", ""]
    assert len(set(folders.values())) == 3
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["20-numbers"]


@pytest.mark.slow
def test_it_runs_from_any_folder_with_a_relative_path_to_submax(tmp_path):
    script = BENCHMARKS / "live" / "growth.py"
    source = os.path.relpath(BENCHMARKS.parent / "src", tmp_path)
    words = ["--rows", "100", "--logs", "no context", "--out", "growth.csv"]
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-c", FIRST_STEP, str(script), *words]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert "step fill" in (tmp_path / "growth.csv").read_text()


FIRST_STEP = """
import runpy, sys

script, *words = sys.argv[1:]
module = runpy.run_path(script)
module["main"].__globals__["lanes"] = lambda log, rows: [[("fill", "counting (default)")]]
sys.argv = [script, *words]
module["main"]()
"""
