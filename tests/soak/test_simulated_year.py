"""A simulated year: nothing acknowledged is lost, memory is flat, and the log stays whole.

``make soak`` runs it for 30 minutes, or for ``SUBMAX_SOAK_MINUTES``, but at least as long as the
smallest number of decisions takes, which is about ten minutes on two cores. Without
``SUBMAX_SOAK`` ten days run, with the same faults and checks.
"""

import csv
import os
import time
from pathlib import Path

import pytest
from simulated_year import DAY, NAME, SimulatedYear
from store_checks import check_nothing_lost, check_the_same_version, submax_command

from submax.simulation.results import record_run

SOAK = "SUBMAX_SOAK" in os.environ
MINUTES = float(os.environ.get("SUBMAX_SOAK_MINUTES", "30"))
PHASE_DAYS = [73] * 5 if SOAK else [10]
"""Days of each phase, after which everything is checked."""
REFIT_DAYS = 1 if SOAK else 5
FIRST_DECISIONS = 80_000 if SOAK else 500
"""Decisions of the first phase, from which it is computed how many the others can have."""
OUT = os.environ.get("SUBMAX_SOAK_OUT")
"""A CSV in which what was reached is published."""
LOCK_SECONDS = 12.0 if SOAK else 0.2
"""Longer than SQLite waits for a lock, so that writes fail; in short, they only wait."""
GROWTH = 1.2
"""The most by which the memory of a worker may grow. A process that kept the rows of all phases
would have at least 2.5 times as many at the end of the last phase as at the end of the second. What
is not flat is the allocator, which returns pages late and differs by some percent from run to run,
and the list of versions, some hundred bytes each."""


@pytest.mark.slow
def test_a_year_of_kills_outages_and_clock_jumps(tmp_path, seed, capsys):
    begin = time.monotonic()
    place = tmp_path / "page.db"
    year = SimulatedYear(place, seed, LOCK_SECONDS, REFIT_DAYS)
    decisions = FIRST_DECISIONS
    for phase, days in enumerate(PHASE_DAYS):
        started = time.monotonic()
        year.run_phase(days, decisions)
        written = time.monotonic()
        check_after_phase(year, place, tmp_path)
        costs = (written - started) / decisions, time.monotonic() - written
        phases = len(PHASE_DAYS) - 1 - phase
        if phases:
            left = 60 * MINUTES - (time.monotonic() - begin)
            decisions = affordable(left, phases, year.journal.count, *costs)
    if SOAK:
        rows = {"what": "value", **published(year, time.monotonic() - begin)}
        with capsys.disabled():
            print("", *(f"{what}: {value}" for what, value in rows.items()), sep="\n")
        if OUT:
            with Path(OUT).open("w", newline="", encoding="utf-8") as file:
                csv.writer(file, lineterminator="\n").writerows(rows.items())
            # Which command did it, and where.
            record_run(Path(OUT))
        # In ten days a process has hardly done everything once.
        check_memory(year.memory)


def check_after_phase(year, place, folder):
    """Everything that must hold whenever the store is closed."""
    year.now += DAY
    check_nothing_lost(place, NAME, year.journal, folder)
    check_the_same_version(place, NAME, year.now, folder)
    submax_command("doctor", place)


def affordable(seconds, phases, written, write_cost, check_seconds):
    """The decisions of each phase that is left, if all of them are to take ``seconds``.

    A phase of x decisions takes x times ``write_cost`` to write. After it everything is checked,
    which takes ``check_seconds`` for the ``written`` decisions so far, and in proportion for more.
    """
    check_cost = check_seconds / written
    free = seconds - check_cost * phases * written
    cost = phases * write_cost + check_cost * phases * (phases + 1) / 2
    return max(FIRST_DECISIONS, int(free / cost))


def check_memory(samples):
    """Memory grows neither while a worker runs nor with the log.

    Each phase has a sample after 70 % of its days, when its last worker has done everything once,
    and one at its end. In no phase may the second be much larger than the first.

    The ends of phases are compared from the second one on. A limit on all of the memory is a weak
    one, because an allocator returns pages late. A stricter one is on what is in use, which is much
    less noisy: it may grow by the same share.
    """
    for early, late in samples:
        assert late["resident"] <= GROWTH * early["resident"], samples
    first, *others = [late for _, late in samples[1:]]
    assert others[-1]["resident"] <= GROWTH * first["resident"], samples
    for late in others:
        assert late["allocated"] <= GROWTH * first["allocated"], samples
        assert late["objects"] <= GROWTH * first["objects"], samples


def published(year, seconds):
    """What was reached, by name."""
    return {
        "minutes": f"{seconds / 60:.0f}",
        "simulated days": year.days,
        "decisions": year.journal.count,
        "acknowledged events": year.journal.events,
        "lost": 0,
        **{f"fault: {name.replace('_', ' ')}": count for name, count in year.faults.items()},
        "commands that failed": year.errors,
        **{
            f"resident MB after phase {number}": f"{late['resident'] / 1e6:.0f}"
            for number, (_, late) in enumerate(year.memory, start=1)
        },
    }
