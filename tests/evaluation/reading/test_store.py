"""The log of a bandit, read from its store."""

import numpy as np
import pytest
from click.testing import CliRunner
from postgres_server import PASSWORD

from submax.bandit.durable import open_bandit
from submax.bandit.store import copy_store
from submax.cli import main

VISITS = 60


@pytest.fixture
def path(tmp_path):
    """A store with the bandit ``shop``, all but three of whose decisions have matured."""
    now = [1e9]
    bandit = open_bandit(
        tmp_path / "shop.db",
        actions=["A", "B"],
        context={"age": float, "country": ["de", "fr"]},
        reward_wait=60,
        background=False,
        clock=lambda: now[0],
        rng=np.random.default_rng(0),
    )
    for visit in range(VISITS):
        if visit == VISITS - 3:
            now[0] += 100
        context = {"age": 20.0 + visit, "country": ["de", "fr"][visit % 2]}
        decision = bandit.decide(context, id=f"v{visit}")
        if decision.action == "B":
            bandit.reward(decision.id, 1)
    bandit.refit()
    bandit.close()
    return tmp_path / "shop.db"


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_commands_take_a_store_and_print_no_password(
    database, path, tmp_path, monkeypatch, request
):
    monkeypatch.chdir(tmp_path)
    store = "shop.db"
    if database == "postgresql":
        store = request.getfixturevalue("postgres_address")
        copy_store(path, store)

    def run(*given):
        done = CliRunner().invoke(main, given, catch_exceptions=False)
        assert PASSWORD not in done.output
        assert done.exit_code == 0 or "'shop'" in done.output or "allowed: shop" in done.output
        return done.exit_code

    assert run("evaluate", store, "--policy", "always=A", "--estimator", "ips") == 0
    assert (tmp_path / "evaluation" / "estimates.csv").exists()
    assert run("learn", store, "--policy", "rcp-submax") == 0
    assert (tmp_path / "policy.safetensors").exists()
    assert run("evaluate", store, "--bandit", "other", "--policy", "always=A") != 0
    open_bandit("empty.db", name="shop", actions=["A", "B"], background=False).close()
    assert run("evaluate", "empty.db", "--policy", "always=A") != 0
