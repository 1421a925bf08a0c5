"""Exports are written in a process of their own, one at a time, and leave nothing behind."""

import io
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pyarrow.parquet as pq
import pytest
from waiting import wait_until

from submax.bandit.jobs import JobError
from submax.server.service import Service

from .conftest import created, decided

EXPORT = "/bandits/arms/export"


@pytest.fixture
def http(serving, store, tmp_path, monkeypatch):
    """A server whose temporary files are in a folder of the test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    client = serving(store)
    created(client, {"name": "arms", "actions": ["A", "B"]})
    client.made = [decided(client)["id"] for _ in range(20)]
    client.folder = folder
    return client


@pytest.mark.parametrize("wanted", [None, "bytes=0-10", "bytes=5-2", "bytes=x", "lines=1", "\xff"])
def test_an_export_is_sent_as_a_whole_and_leaves_no_file(http, wanted):
    headers = {} if wanted is None else {"range": wanted.encode("latin-1")}
    answer = http.get(EXPORT, headers=headers)
    assert answer.status_code == 200
    rows = pq.read_table(io.BytesIO(answer.content)).to_pylist()
    assert [row["id"] for row in rows] == http.made
    assert list(http.folder.iterdir()) == []


class Waiting:
    """Runs jobs as a ``JobRunner`` does, but waits before."""

    def __init__(self, error):
        self.begun, self.go, self.error = Event(), Event(), error
        self.modes = []

    @property
    def busy(self):
        return self.begun.is_set()

    def run(self, function, address, bandit, path):
        self.begun.set()
        assert self.go.wait(60)
        if self.error is not None:
            raise self.error
        function(address, bandit, path)
        self.modes.append(Path(path).stat().st_mode & 0o077)

    def close(self):
        self.go.set()


@pytest.mark.parametrize("error", [None, JobError("killed"), OSError(28, "no space")])
def test_exports_are_written_one_at_a_time_and_decisions_go_on(serving, store, error):
    service = Service(store)
    jobs = service.exports = Waiting(error)
    http = serving(service)
    wait_until(lambda: service.ready)
    created(http, {"name": "arms", "actions": ["A", "B"]})
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(http.get, EXPORT)
        assert jobs.begun.wait(60)
        refused = http.get(EXPORT)
        assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
        decided(http)
        jobs.go.set()
        assert running.result().status_code == (200 if error is None else 503)
    # Others cannot read what is written.
    assert set(jobs.modes) <= {0}
