"""What the commands list, and what a shell completes."""

import pytest
from click.shell_completion import BashComplete

from submax.cli import main
from submax.environments import ENVIRONMENTS
from submax.estimators import ESTIMATORS
from submax.simulation import DELAYS
from submax.strategies import STRATEGIES


@pytest.mark.parametrize(
    ("command", "folder", "parameter"),
    [
        ("environments", ENVIRONMENTS, "means = None"),
        ("estimators", ESTIMATORS, "smoothing = 1.0"),
        ("strategies", STRATEGIES, "depth = 2"),
        ("delays", DELAYS, "missing = 0.0"),
    ],
)
def test_every_kind_is_listed_with_its_parameters(done, command, folder, parameter):
    said = done(command)
    listed = [line.split()[0] for line in said.splitlines() if line[1:2].strip()]
    assert set(folder.names()) <= set(listed)
    assert parameter in " ".join(said.split())


def completed(*words: str) -> set[str]:
    *before, last = words
    found = BashComplete(main, {}, "submax", "_SUBMAX_COMPLETE").get_completions(before, last)
    return {one.value for one in found}


def test_commands_and_their_words_are_completed():
    assert completed("rep") == {"reproduce"}
    assert completed("reproduce", "--device", "") == {"cpu", "gpu"}
    assert completed("reproduce", "--rep") == {"--replicas"}
    assert {"add", "list", "revoke"} == completed("keys", "")
