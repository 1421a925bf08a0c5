import os
from contextlib import closing

import pytest

from submax.live.bandits.open import open_bandit
from submax.live.fitting.training.training_job import TrainingJob
from submax.live.fitting.training.training_process import TrainingProcess
from submax.live.log.rows.lazy_rows import LazyRows, RowPart
from submax.schema.model import Model

POLICY = '''
import os
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

from submax.core.errors import Error
from submax.policies.thompson import Thompson


class OwnWarning(UserWarning):
    pass


class OwnError(Error):
    def __init__(self, what, number):
        super().__init__(f"{what} {number}")


@dataclass(frozen=True)
class Trained(Thompson):
    """Does what ``how`` says when it is trained; files beside this one record it."""

    how: str = "works"

    @property
    def traits(self):
        return replace(super().traits, trains_models=True)

    def update(self, state, feedback, rng):
        place = Path(__file__)
        place.with_name("process").write_text(str(os.getpid()))
        if self.how == "dies once" and not place.with_name("died").exists():
            place.with_name("died").touch()
            os.write(2, b"out of memory")
            os._exit(3)
        if self.how == "fails":
            raise ZeroDivisionError("no such gradient")
        if self.how == "fails by its own error":
            raise OwnError("no such layer:", 7)
        if self.how == "warns":
            warnings.warn("it hardly learns", OwnWarning)
            os.write(1, b"not a pickle")
            print("neither is this")
        while self.how == "never ends":
            pass
        while self.how == "waits" and not place.with_name("go").exists():
            time.sleep(0.01)
        learned = super().update(state, feedback, rng)
        # With another seed the model has other bytes.
        return learned._replace(pulls=learned.pulls + rng.random(learned.pulls.shape))
'''


class Setup:
    """Jobs for a policy in a file, and what was recorded about its training."""

    def __init__(self, folder, clock):
        self.file = folder / "policy.py"
        self.file.write_text(POLICY)
        bandit = open_bandit(
            ":memory:", actions=["A", "B"], background=False, reward_wait=1, clock=clock
        )
        for number in range(40):
            bandit.decide(id=str(number))
            bandit.reward(str(number), float(number % 3 == 0))
        clock.now += 2
        self.rows = bandit.ledger().rows.columns()
        self.schema = bandit.settings.schema(bandit.menu)

    def policy(self, how="works"):
        return {"kind": f"{self.file}:Trained", "how": how}

    def job(self, how="works"):
        return TrainingJob(self.policy(how), self.schema, seed=5, decisions=100)

    def lazy(self, *keys):
        """The rows, in as many parts as there are keys; None makes a part without a key."""
        size = -(-len(self.rows.reward) // len(keys))
        return LazyRows(
            [
                RowPart.of(self.rows.rows(slice(size * place, size * (place + 1))), key)
                for place, key in enumerate(keys)
            ]
        )

    def fitted_here(self, policy):
        return Model.fitted(self.schema, policy, [self.rows], 5, 100).to_bytes()

    @property
    def process(self):
        return int(self.file.with_name("process").read_text())

    @property
    def is_training_process(self):
        """Whether the last training was not in this process."""
        return self.process != os.getpid()

    def has_begun(self):
        """Whether a training has said in which process it runs."""
        said = self.file.with_name("process")
        return said.exists() and said.read_text() != ""

    def go_on(self):
        """Let a training that waits go on."""
        self.file.with_name("go").touch()


@pytest.fixture
def setup(tmp_path, clock):
    return Setup(tmp_path, clock)


@pytest.fixture(scope="module")
def shared_training():
    """For tests that leave the process as it was; it keeps rows with keys, which one test has."""
    with closing(TrainingProcess()) as training:
        yield training


@pytest.fixture
def training():
    with closing(TrainingProcess()) as training:
        yield training
