"""Notes that a run leaves while it goes on, by which others follow it."""

import os
import time

import pytest

from submax.experiments.following.cell_progress import CellProgress, cell_progress, seconds_left
from submax.experiments.following.noted_run import NotedRun
from submax.experiments.following.planned_cell import PlannedCell, planned
from submax.experiments.following.run_record import PROGRESS, read_records, recorded_run
from submax.experiments.running.cells import cells
from submax.experiments.specification import parse

FILE = """
observations = 10
replicas = 2
policies = ["random", "ucb1"]
[environment]
kind = "bernoulli"
arms = [2, 3]
"""


@pytest.fixture
def some():
    return cells(parse(FILE, "tiny"))


def statuses(folder, some):
    return [one.status for one in cell_progress(folder, planned(some, [2]))]


def test_cells_are_waiting_then_running_then_gone(tmp_path, some):
    seen = []

    def run(cell):
        seen.append(statuses(tmp_path, some))
        return cell.key

    with recorded_run(tmp_path, planned(some, [2])) as notes:
        assert statuses(tmp_path, some) == ["waiting"] * 4
        assert [going for _, going in read_records(tmp_path)] == [True]
        assert NotedRun(run, notes)(some[1]) == some[1].key
    assert seen == [["waiting", "running", "waiting", "waiting"]]
    assert not (tmp_path / PROGRESS).exists()


def test_a_failure_is_noted_with_its_reason_until_the_cell_runs_again(tmp_path, some):
    def fail(cell):
        raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError), recorded_run(tmp_path, planned(some, [2])) as notes:
        NotedRun(fail, notes)(some[0])
    (record, going), *_ = read_records(tmp_path)
    assert (record.ended, going) == ("failed", False)
    found = cell_progress(tmp_path, record.cells)
    assert found[0].status == "failed"
    assert "out of luck" in found[0].error
    with recorded_run(tmp_path, planned(some, [2])):
        assert statuses(tmp_path, some)[0] == "waiting"
    assert read_records(tmp_path) == []


def test_an_interruption_and_a_kill_are_told_apart(tmp_path, some):
    with pytest.raises(KeyboardInterrupt), recorded_run(tmp_path, planned(some)):
        raise KeyboardInterrupt
    assert [(one.ended, going) for one, going in read_records(tmp_path)] == [("stopped", False)]
    with recorded_run(tmp_path, planned(some)):
        (file,) = (tmp_path / PROGRESS).glob("*.json")
        os.utime(file, (time.time() - 60,) * 2)
        assert [(one.ended, going) for one, going in read_records(tmp_path)] == [("", False)]


def test_a_worker_without_the_folder_leaves_no_notes(tmp_path, some):
    assert NotedRun(lambda cell: 1, tmp_path / "elsewhere")(some[0]) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_cell_and_a_damaged_record_are_no_reason_to_fail(tmp_path, some):
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / f"{some[0].key}.npz").write_bytes(b"PK torn")
    (tmp_path / PROGRESS).mkdir()
    (tmp_path / PROGRESS / "1.json").write_text("{", encoding="utf-8")
    assert statuses(tmp_path, some)[:2] == ["damaged", "waiting"]
    assert read_records(tmp_path) == []


def cell(policy, status, seconds=0.0, decisions=100):
    return CellProgress(PlannedCell(policy, {}, decisions, [policy]), status, seconds)


def test_time_left_is_by_policy_and_by_cells_at_a_time():
    done = [cell("quick", "done", 1.0), cell("slow", "done", 10.0)]
    assert seconds_left(done) is None
    found = [*done, cell("slow", "running", 4.0), cell("quick", "running", 0.0)]
    # Left: 6 seconds of a slow cell, 1 of a quick one, and two slow ones that wait; two at a time.
    found += [cell("slow", "waiting"), cell("slow", "waiting")]
    assert seconds_left(found) == pytest.approx((6 + 1 + 20) / 2)
    assert seconds_left([*done, cell("slow", "running", 4.0)]) == pytest.approx(6.0)
    # A policy of which nothing is known takes at least as long as it has been running.
    new = [cell("quick", "done", 1.0), cell("new", "running", 30.0), cell("new", "waiting")]
    assert seconds_left(new) == pytest.approx(30.0)
