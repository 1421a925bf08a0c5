import os

import pytest
from hypothesis import settings

settings.register_profile("submax", deadline=None, derandomize=True, database=None)
settings.load_profile("submax")


@pytest.fixture(scope="session")
def seed() -> int:
    return int(os.environ.get("SUBMAX_SEED", "0"))
