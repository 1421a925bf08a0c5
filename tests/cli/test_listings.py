import pytest

from submax.environments import ENVIRONMENTS
from submax.estimators import ESTIMATORS
from submax.simulation import DELAYS
from submax.strategies import STRATEGIES


@pytest.mark.parametrize(
    ("command", "folder", "words"),
    [
        ("environments", ENVIRONMENTS, "means = None"),
        ("estimators", ESTIMATORS, "smoothing = 1.0"),
        ("strategies", STRATEGIES, "depth = 2"),
        ("delays", DELAYS, "missing = 0.0"),
    ],
)
def test_every_kind_is_listed_with_its_parameters(run_here, command, folder, words):
    done = run_here(command)
    assert done.returncode == 0
    listed = [line.split()[0] for line in done.stdout.splitlines() if line[1:2].strip()]
    assert set(folder.names()) <= set(listed)
    assert words in " ".join(done.stdout.split())
