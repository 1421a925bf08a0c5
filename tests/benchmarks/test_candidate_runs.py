"""Runs of candidates, of which an interrupted call loses as few as possible."""

import csv
import time
from pathlib import Path

import numpy as np
import pytest

from submax.environments.networks.combinatorial import Combinatorial

BENCHMARKS = Path(__file__).parents[2] / "benchmarks" / "policies"


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_best_rewards_are_computed_once_for_equal_worlds_and_contexts(tmp_path, monkeypatch):
    from recalled_best import recalling

    environment = Combinatorial((3, 2, 4), dimension=3, shift=0.0, hidden=8)
    recalled, rng = recalling(environment, tmp_path), np.random.default_rng(0)
    world = environment.reset(2, rng)
    context = environment.contexts(world, 5, rng)
    best = environment.best_reward(world, context)
    np.testing.assert_array_equal(recalled.best_reward(world, context), best)
    others = environment.best_reward(world, -context)
    np.testing.assert_array_equal(recalled.best_reward(world, -context), others)
    assert len(list(tmp_path.iterdir())) == 2

    def computed_again(*given):
        raise AssertionError("the best rewards are in a file")

    monkeypatch.setattr(Combinatorial, "best_reward", computed_again)
    np.testing.assert_array_equal(recalled.best_reward(world, context), best)


def test_the_best_rewards_of_every_block_can_be_stored_before(tmp_path, monkeypatch):
    from candidate_runs import BATCH, run, store_best

    monkeypatch.setattr("candidate_runs.BATCH", 4)
    assert BATCH != 4
    environment = {"kind": "combinatorial", "sizes": (3, 2), "dimension": 3, "hidden": 8}
    alone = tmp_path / "alone"
    alone.mkdir()
    expected = run({"kind": "random"}, environment, 2, 10, alone)
    together = tmp_path / "together"
    together.mkdir()
    for block, files in enumerate((1, 2, 3)):
        store_best(environment, 2, 10, together, block)
        assert len(list(together.iterdir())) == files
    assert {file.name for file in alone.iterdir()} == {file.name for file in together.iterdir()}
    monkeypatch.setattr(Combinatorial, "best_reward", None)
    assert run({"kind": "random"}, environment, 2, 10, together) == expected


def test_candidates_that_are_in_the_file_are_not_run_again(tmp_path, monkeypatch):
    from candidate_runs import COLUMNS, WORKER, Candidate, tune

    # What the call sets for its workers must not reach other tests.
    for name, value in WORKER.items():
        monkeypatch.setenv(name, value)

    out = tmp_path / "rows.csv"
    known = dict(zip(COLUMNS, ("known", "width 2", "0.5", "1.0", "2.0"), strict=True))
    base = dict(zip(COLUMNS, ("random", "", "1.000", "3.0", "2.0"), strict=True))
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows([known, base])
    made = [Candidate("random", "", {}), Candidate("known", "width 2", {"kind": "no such policy"})]
    tune(made, [], (1, 1), 1, out)
    with out.open(encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file)) == [base, known]


def test_a_call_that_is_stopped_while_it_writes_loses_no_row(tmp_path):
    from candidate_runs import COLUMNS, rows_of, write_rows

    out, row = tmp_path / "rows.csv", dict.fromkeys(COLUMNS, "1.0")
    write_rows(out, [row])

    def stopped():
        yield row
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(out, stopped())
    assert list(rows_of(out).values()) == [row]


def test_random_choice_comes_first_and_then_the_longest_training():
    from candidate_runs import Candidate, most_work_first

    texts = ("hidden 16, steps 40", "hidden 128, steps 40", "hidden 16, steps 600", "width 2")
    slow = Candidate("rcp-autoregressive-submax", "hidden 16, steps 75", {})
    many = Candidate("advantage-conditioned-cvae", "hidden 32, steps 75", {})
    others = [many, slow, Candidate("random", "", {})]
    made = [*(Candidate("one", text, {}) for text in texts), *others]
    order = [one.parameters for one in sorted(made, key=most_work_first)]
    slowest = [slow.parameters, many.parameters]
    assert order == ["", *slowest, texts[2], texts[1], texts[0], texts[3]]


SMALL = [{"kind": "contextual", "arms": 3, "dimension": 2}]
RANDOM = {"kind": "random"}


def test_the_others_are_written_if_a_candidate_fails(tmp_path, monkeypatch):
    from candidate_runs import WORKER, Candidate, rows_of, tune

    for name, value in WORKER.items():
        monkeypatch.setenv(name, value)
    out = tmp_path / "rows.csv"
    wrong = Candidate("wrong", "steps 9", {"kind": "no such policy"})
    good = Candidate("good", "steps 1", RANDOM)
    failed, left = tune([Candidate("random", "", RANDOM), wrong, good], SMALL, (1, 20), 1, out)
    assert (failed, left) == ([wrong], [])
    assert list(rows_of(out)) == [("random", ""), ("good", "steps 1")]


def test_a_call_stops_itself_when_the_time_is_up(tmp_path, monkeypatch):
    from candidate_runs import COLUMNS, WORKER, Candidate, rows_of, tune, write_rows

    for name, value in WORKER.items():
        monkeypatch.setenv(name, value)
    out = tmp_path / "rows.csv"
    rows = [
        dict(zip(COLUMNS, (*name, "1.000", "3.0", "2.0"), strict=True))
        for name in (("other", "steps 2"), ("random", ""))
    ]
    write_rows(out, rows)
    made = [Candidate("random", "", RANDOM), Candidate("endless", "steps 1", RANDOM)]
    begin = time.monotonic()
    # A run of 10⁹ decisions cannot end in the time that the call has.
    outcome = tune(made, SMALL, (1, 10**9), 1, out, minutes=0.02)
    assert (outcome.failed, outcome.left) == ([], [made[1]])
    assert time.monotonic() - begin < 60
    # A row of a candidate that was not asked for now is kept, too.
    assert list(rows_of(out)) == [("random", ""), ("other", "steps 2")]
