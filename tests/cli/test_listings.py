"""What the commands list."""

import pytest

from submax.environments import ENVIRONMENTS
from submax.estimators import ESTIMATORS
from submax.simulation import DELAYS
from submax.strategies import STRATEGIES


@pytest.mark.parametrize(
    ("command", "folder", "parameter"),
    [
        ("environments", ENVIRONMENTS, "means=None"),
        ("estimators", ESTIMATORS, "smoothing=1.0"),
        ("strategies", STRATEGIES, "depth=2"),
        ("delays", DELAYS, "missing=0.0"),
    ],
)
def test_every_kind_is_listed_with_its_parameters(done, command, folder, parameter):
    said = done(command)
    listed = [line.split()[0].rstrip(":") for line in said.splitlines() if line[1:2].strip()]
    assert set(folder.names()) <= set(listed)
    assert parameter in " ".join(said.split())
