"""Vowpal Wabbit: median microseconds to decide and to learn, one decision at a time.

The problem is that of ``live.py``: ten arms, and a context of a country and two numbers. It is a
contextual bandit with action-dependent features, in the text format of the documentation.
"""

import json
import statistics
import time

from vowpalwabbit import Workspace

ARMS, CALLS = 10, 5000
SHARED = "shared |s country=fr age:31 visits:4"


def examples(taken: int | None = None) -> list[str]:
    """The lines of an example: the context and the arms; the arm ``taken`` has a label."""
    lines = [f"|a arm={number}" for number in range(ARMS)]
    if taken is not None:
        lines[taken] = f"0:{-float(taken == 3)}:{1 / ARMS} {lines[taken]}"
    return [SHARED, *lines]


def main() -> None:
    workspace = Workspace("--cb_explore_adf --epsilon 0.1 --interactions sa --quiet")
    decide, learn = [], []
    for number in range(CALLS):
        begin = time.perf_counter()
        workspace.predict(examples())
        decide.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        workspace.learn(examples(number % ARMS))
        learn.append(time.perf_counter() - begin)
    workspace.finish()
    found = {"decide": statistics.median(decide), "learn": statistics.median(learn)}
    print(json.dumps({what: 1e6 * seconds for what, seconds in found.items()}))


if __name__ == "__main__":
    main()
