import os
import subprocess
import sys

import pytest

from submax.live.declaring.names import DRAWN_AT_ONCE, new_identifier


def test_ids_are_unique_and_sort_by_time():
    made = [new_identifier() for _ in range(3 * DRAWN_AT_ONCE + 1)]
    assert len(set(made)) == len(made)
    assert [one[:13] for one in made] == sorted(one[:13] for one in made)
    assert {len(one) for one in made} == {36}
    assert {one[14] for one in made} == {"7"}
    assert {one[19] for one in made} == set("89ab")


FORKED = """
import os
from submax.live.declaring.names import RANDOM_PARTS, new_identifier

new_identifier()
assert RANDOM_PARTS
if os.fork():
    os.wait()
print(*[new_identifier()[14:] for _ in range(5)], flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_process_that_was_forked_makes_other_ids():
    # In a process of its own, because libraries of this one have threads, which forks do not copy.
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=True
    )
    made = done.stdout.split()
    assert len(made) == len(set(made)) == 10
