"""The pages of the server are followed, block by block, in the order of a reader."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import submax
from submax.cli import main

ROOT = Path(__file__).parents[2]
NAMES = ("server", "deploy", "monitor")
"""Each page goes on where the one before it ended."""
PAGES = {
    name: (ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8") for name in NAMES
}
PAGE = "\n".join(PAGES.values())
INLINE = set(re.findall(r"`(submax [^`]* (?:homepage\.db|http:|--)[^`]*)`", PAGE))
"""The commands inside of sentences; those without arguments are only named."""
LIFT, ADD, DEMO = (
    "submax lift --store http://127.0.0.1:8000",
    "submax keys add --store http://127.0.0.1:8000 --scope admin",
    "submax demo --for 60s",
)
"""Commands that need a server, or are one: the blocks of the page and other tests run them."""


def blocks(*languages):
    return re.findall(rf"```({'|'.join(languages)})\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.needs("curl", "nginx", "openssl")
@pytest.mark.slow
def test_a_newcomer_follows_the_pages(reader, tmp_path):
    printed = [reader.follow(*block) for block in blocks("sh", "python")]
    said = "".join(printed)
    # The trial: a decision, its reward, the log, and both clients.
    assert '"id":"visit-1","status":"accepted","repeated":false' in said
    (row,) = pq.read_table(tmp_path / "log.parquet").to_pylist()
    assert (row["id"], row["reward"], row["status"]) == ("visit-1", 1.0, "pending")
    assert row["action"] in "ABC"
    (reward,) = pq.read_table(tmp_path / "rewards.parquet").to_pylist()
    assert (reward["id"], reward["value"]) == ("visit-1", 1.0)
    assert "accepted\n" in printed
    assert "{'accepted'}\n" in printed
    # In production: the reward through the proxy, the metrics, the audit.
    assert '"id":"visit-2","status":"accepted","repeated":false' in said
    assert "holdout" in said
    assert 'submax_requests_total{operation="reward",status="200"}' in said
    assert re.search(r"operator \(\w+\)  add-key", said)
    assert "for browsers" in said
    log = [json.loads(line) for line in (tmp_path / "server.log").read_text().splitlines()]
    assert log[0]["event"] == "serving"


def test_commands_inside_of_sentences_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    submax.open("homepage.db", actions=["A", "B"], background=False).close()
    assert {LIFT, ADD, DEMO} <= INLINE
    for command in sorted(INLINE - {LIFT, ADD, DEMO}):
        done = CliRunner().invoke(main, command.split()[1:], input="y\n")
        assert done.exit_code == 0, (command, done.output)


def test_every_variable_and_file_that_the_page_names_exists():
    for named in re.findall(r"`deploy/([\w.]+)`", PAGE):
        assert (ROOT / "deploy" / named).exists()
    for target in re.findall(r"\]\((\.\./[^)#]*)", PAGE):
        assert (ROOT / "docs" / "how-to" / target).exists()
