import re

import numpy as np
import pytest
from in_browser import browser  # noqa: F401 - pytest finds fixtures by their names here
from postgres_server import postgres, postgres_address  # noqa: F401 - pytest finds fixtures by their names here
from refusals import raises_code

from submax.evaluation import Log


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


@pytest.fixture
def mentioned():
    def check(sentences, *facts):
        """Whether one line of these sentences has all these facts: names, numbers, counts."""
        patterns = [rf"(?<![\w.]){re.escape(str(fact))}(?!\w|\.\d)" for fact in facts]
        lines = [line for one in sentences for line in one.splitlines()]
        return any(all(re.search(one, line) for one in patterns) for line in lines)

    return check


@pytest.fixture
def refused(mentioned):
    def check(log, *problems, **options):
        """The log is refused, and each problem, a tuple of facts, is in one line of the error."""
        with raises_code("invalid-input") as found:
            Log.read(log, **options)
        for facts in problems:
            assert mentioned([str(found.value)], *facts), (facts, str(found.value))

    return check
