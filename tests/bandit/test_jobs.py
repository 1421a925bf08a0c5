"""Jobs run in a process of their own, which may die, freeze or be closed."""

import math
import os
import signal
import time
import warnings
from threading import Thread

import pytest

from submax.bandit.jobs import JobError, JobRunner
from submax.core.errors import InputError, StoreError
from submax.policies import make_policy

LONG = 600.0


def test_jobs_run_in_one_other_process_of_low_priority(jobs):
    first = jobs.run(os.getpid)
    assert first == jobs.run(os.getpid) != os.getpid()
    assert jobs.run(os.nice, 0) >= min(19, os.nice(0) + 10)
    assert jobs.run(os.getenv, "OMP_NUM_THREADS") == os.getenv("OMP_NUM_THREADS", "1")


def test_errors_and_warnings_come_back(jobs):
    with pytest.raises(InputError, match="no-such-policy") as caught:
        jobs.run(make_policy, "no-such-policy")
    assert caught.value.code == "invalid-input"
    with pytest.raises(JobError, match="math domain error"):
        jobs.run(math.sqrt, -1.0)
    with pytest.warns(DeprecationWarning, match="old"):
        jobs.run(warnings.warn, "old", DeprecationWarning)
    with pytest.raises(JobError):
        # A result that cannot be sent.
        jobs.run(compile, "1", "code", "eval")
    assert jobs.run(math.sqrt, 4.0) == 2.0


def test_a_dead_process_fails_its_job_and_no_other(jobs):
    with pytest.raises(JobError) as caught:
        jobs.run(os._exit, 3)
    assert caught.value.code == "job-failed"
    first = jobs.run(os.getpid)
    # One that dies between two jobs is not noticed.
    os.kill(first, signal.SIGKILL)
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    assert jobs.run(os.getpid) != first


def test_closing_breaks_off_a_job():
    runner, errors = JobRunner(), []

    def job():
        try:
            runner.run(time.sleep, LONG)
        except StoreError as error:
            errors.append(error.code)

    runner.run(os.getpid)
    thread = Thread(target=job)
    thread.start()
    while not runner.busy:
        time.sleep(0)
    runner.close()
    thread.join()
    assert errors == ["store-unavailable"]
    with pytest.raises(StoreError):
        runner.run(os.getpid)
