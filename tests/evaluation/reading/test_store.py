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


def test_commands_take_a_postgresql_store_and_print_no_password(
    path, postgres_address, tmp_path, monkeypatch
):
    copy_store(path, postgres_address)
    monkeypatch.chdir(tmp_path)
    arguments = ["learn", postgres_address, "--policy", "rcp-submax"]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert (done.exit_code, (tmp_path / "policy.safetensors").exists()) == (0, True), done.output
    assert PASSWORD not in done.output


def test_commands_take_a_store(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*given):
        return CliRunner().invoke(main, given, catch_exceptions=False)

    done = run("evaluate", "shop.db", "--policy", "always=A", "--estimator", "ips")
    assert (done.exit_code, (tmp_path / "evaluation" / "estimates.csv").exists()) == (0, True)
    assert run("learn", "shop.db", "--policy", "rcp-submax").exit_code == 0
    assert (tmp_path / "policy.safetensors").exists()
    assert run("evaluate", "shop.db", "--bandit", "other", "--policy", "always=A").exit_code != 0
