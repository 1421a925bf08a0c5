import asyncio

import httpx
import msgspec
import pytest

from submax.experiments.running.study import run_study
from submax.experiments.specification import parse
from submax.web.results_server.app import make_app
from submax.web.results_server.folders import Folders

FILE = """
title = "Tiny <i>arms</i>"
observations = 60
replicas = 6
points = 5
policies = ["random", "ucb1", "rcp-submax"]
[environment]
kind = "bernoulli"
arms = [2, 3]
"""


class InProcess:
    """A client of an application in this process."""

    def __init__(self, app):
        self._transport = httpx.ASGITransport(app)

    def get(self, path, **options):
        return asyncio.run(self._get(path, **options))

    async def _get(self, path, **options):
        address = "http://127.0.0.1"
        async with httpx.AsyncClient(transport=self._transport, base_url=address) as client:
            return await client.get(path, **options)


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """Results of three runs: one, the same again, and one with another seed."""
    root = tmp_path_factory.mktemp("results")
    for name, seed in (("one", 0), ("same", 0), ("other", 7)):
        run_study(parse(FILE, name), root, seed=seed)
    return root


@pytest.fixture
def client():
    def client(root):
        return InProcess(make_app(Folders(root)))

    return client


@pytest.fixture
def http(client, results):
    return client(results)


@pytest.fixture
def decoded():
    """Decode an answer as a type, which checks it."""
    return lambda response, kind: msgspec.json.decode(response.content, type=kind)
