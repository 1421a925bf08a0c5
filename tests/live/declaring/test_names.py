import os

import pytest

from submax.live.declaring.names import DRAWN_AT_ONCE, RANDOM_PARTS, new_identifier


def test_ids_are_unique_and_sort_by_time():
    made = [new_identifier() for _ in range(3 * DRAWN_AT_ONCE + 1)]
    assert len(set(made)) == len(made)
    assert [one[:13] for one in made] == sorted(one[:13] for one in made)
    assert {len(one) for one in made} == {36}
    assert {one[14] for one in made} == {"7"}
    assert {one[19] for one in made} == set("89ab")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_process_that_was_forked_makes_other_ids():
    new_identifier()
    assert RANDOM_PARTS
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, "\n".join(new_identifier()[14:] for _ in range(5)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = set(os.read(reading, 1000).decode().split("\n"))
    assert len(theirs) == 5
    assert not theirs & {new_identifier()[14:] for _ in range(5)}
