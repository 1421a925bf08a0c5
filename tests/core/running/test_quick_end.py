"""The end of a process does not look for garbage if it was asked not to."""

import subprocess
import sys

import pytest

CODE = """
from submax.core.running.quick_end import end_without_collection

class Told:
    def __del__(self):
        print("collected")

{before}
in_a_cycle = Told()
in_a_cycle.itself = in_a_cycle
del in_a_cycle
print("written without a line end", end="")
"""


@pytest.mark.parametrize(
    ("before", "collected"), [("end_without_collection()", 0), ("", 1)], ids=["asked", "not asked"]
)
def test_garbage_is_left_to_the_system(before, collected):
    code = CODE.format(before=before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("collected") == collected
    # What was printed is there in any case.
    assert "written without a line end" in done.stdout
