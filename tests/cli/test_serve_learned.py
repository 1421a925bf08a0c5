import httpx
import pytest
from click.testing import CliRunner

from submax.cli import main
from submax.evaluation.choosing.learning import learn
from submax.evaluation.logs.log import Log
from submax.live.bandits.open import open_bandit
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.history import _segment_name
from submax.live.store.sqlite_store import SQLiteStore
from submax.web.server.access.key_registry import KeyRegistry

LOG = {"action": ["A", "B"] * 20, "reward": [1, 0] * 20}
OWN = """
from dataclasses import dataclass
from pathlib import Path
from submax.policies.classic.random import Random

Path(__file__).with_name("was-run").touch()

@dataclass(frozen=True)
class Own(Random):
    pass
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(policy="rcp-submax", **options):
    learn(Log.read(LOG), policy, **options).write("policy.safetensors")


def refused(*options):
    arguments = ["serve", "page.db", "--port", "0", "--learned", "policy.safetensors", *options]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def files(folder):
    return sorted(file.name for file in folder.iterdir() if file.name != "__pycache__")


def test_a_policy_that_kept_too_few_rows_makes_no_store(folder):
    written(keep_rows=0)
    assert "learn again with more --keep-rows" in refused()
    assert files(folder) == ["policy.safetensors"]


def test_an_address_that_needs_a_key_makes_no_store(folder):
    written()
    assert "there is no key" in refused("--host", "0.0.0.0")
    assert files(folder) == ["policy.safetensors"]


def test_an_address_that_cannot_be_listened_on_starts_no_bandit(folder):
    written()
    store = SQLiteStore(folder / "page.db")
    KeyRegistry(store).add(["admin"])
    before = store.streams()
    store.close()
    assert "cannot listen on" in refused("--host", "256.256.256.256")
    store = SQLiteStore(folder / "page.db")
    assert store.streams() == before
    store.close()


def test_a_policy_of_a_file_is_served_only_with_trust(folder, start):
    (folder / "own.py").write_text(OWN)
    written({"kind": f"{folder / 'own.py'}:Own"})
    (folder / "was-run").unlink()
    assert "holds a policy from a file, which would be run" in refused()
    assert files(folder) == ["own.py", "policy.safetensors"]
    process = start("serve", "page.db", "--port", 0, "--learned", "policy.safetensors", "--trust")
    try:
        line = process.stderr.readline()
        assert "submax serves page.db" in line
        assert httpx.get(f"{line.rpartition(' ')[2].strip()}/healthz").status_code == 200
        assert (folder / "was-run").exists()
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_doctor_says_how_many_rows_a_bandit_was_started_with_and_finds_damage(folder):
    written("rcp-optimized")
    open_bandit("page.db", learned="policy.safetensors", background=False).close()
    result = CliRunner().invoke(main, ["doctor", "page.db"])
    assert result.exit_code == 0, result.output
    assert (
        "page: started with 40 rows of a log; 40 rows learned from have estimated" in result.stdout
    )
    store = SQLiteStore(folder / "page.db")
    history = SettingsProjection.of(store, "page").history
    store.delete_blob(_segment_name("page", 0, history))
    store.close()
    result = CliRunner().invoke(main, ["doctor", "page.db"])
    assert result.exit_code == 1
    assert (
        "DAMAGE page: segment 0 of the rows that page was started with is missing" in result.stdout
    )
