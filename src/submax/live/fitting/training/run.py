"""The process that trains models: ``python -m submax.live.fitting.training.run``.

Jobs come as pickles on standard input, each followed by the rows of its parts, and answers are
written as pickles to standard output. The process that decides keeps standard input open; when it
ends, even by a kill, this process ends as well.
"""

import os
import pickle
import signal
import sys
import traceback
import warnings
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO

from submax.core.errors import Error, one_line
from submax.live.fitting.training.job_part import JobPart
from submax.live.fitting.training.training_answer import TrainingAnswer
from submax.live.fitting.training.training_job import TrainingJob
from submax.live.fitting.training.worker import READY
from submax.policies.specification import PolicySpecification
from submax.schema.model import Model
from submax.schema.rows import Columns

NICENESS = 10
"""A low priority: if all cores are busy, decisions come before training. It is not the lowest, by
which exports run, because versions must not become outdated while a log is exported."""

PartRows = dict[str, Columns]
"""The parts that the process keeps for later jobs, by their keys."""


def main() -> None:
    """Train models for the jobs on standard input, one after the other, until it is closed."""
    try:
        _train()
    except BaseException:
        _complain()
    finally:
        # An ordinary end would abort, because the thread that reads holds standard input.
        os._exit(1)


def _train() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    answers = _answers()
    jobs: SimpleQueue[tuple[TrainingJob, list[Columns]]] = SimpleQueue()
    Thread(target=_read, args=(sys.stdin.buffer, jobs), daemon=True).start()
    kept: PartRows = {}
    answers.write(READY)
    answers.flush()
    while True:
        job, sent = jobs.get()
        pickle.dump(_answer(job, _rows(job, sent, kept)), answers)
        answers.flush()


def _answers() -> BinaryIO:
    """Return standard output; what anybody else prints goes to standard error from now on."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _read(stream: BinaryIO, jobs: "SimpleQueue[tuple[TrainingJob, list[Columns]]]") -> None:
    """Read jobs with their rows; at the end of the stream, or at an error, end the process.

    It ends even during a job. Without this thread, the other process would wait for ever.
    """
    try:
        while True:
            job: TrainingJob = pickle.load(stream)
            jobs.put((job, [pickle.load(stream) for part in job.parts if part.sent]))
    except BaseException:
        _complain()
    finally:
        os._exit(1)


def _complain() -> None:
    """Write the error that is being handled to standard error, which the other process logs."""
    traceback.print_exc()
    sys.stderr.flush()


def _rows(job: TrainingJob, sent: list[Columns], kept: PartRows) -> list[Columns]:
    """Return the rows of a job in order, from those sent with it and those kept from before."""
    for key in job.forgotten:
        kept.pop(key, None)
    given = iter(sent)
    return [_part(part, next(given) if part.sent else None, kept) for part in job.parts]


def _part(part: JobPart, sent: Columns | None, kept: PartRows) -> Columns:
    if part.key is not None and sent is not None:
        kept[part.key] = sent
    columns = sent if sent is not None else kept[part.key or ""]
    return columns.rows(slice(part.first, part.end))


def _answer(job: TrainingJob, rows: list[Columns]) -> TrainingAnswer:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            policy = PolicySpecification(job.policy).build()
            model = Model.fitted(job.schema, policy, rows, job.seed, job.decisions)
            answer = TrainingAnswer(model=model.to_bytes())
        except Exception as error:
            # The user's own file may define errors, which the other process cannot always make.
            if isinstance(error, Error) and _package(type(error)) == "submax":
                answer = TrainingAnswer(error=error)
            else:
                answer = TrainingAnswer(failure=one_line(error), details=traceback.format_exc())
    said = tuple((str(one.message), _known(one.category)) for one in caught)
    return answer._replace(warnings=said)


def _known(category: type[Warning]) -> type[Warning]:
    """Return a category that the other process knows; the user's own file may define others."""
    return category if _package(category) in ("builtins", "submax") else UserWarning


def _package(kind: type) -> str:
    """Return the name of the package that defines a class."""
    return kind.__module__.partition(".")[0]


if __name__ == "__main__":
    main()
