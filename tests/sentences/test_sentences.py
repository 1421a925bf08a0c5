"""The sentences that users read when something is wrong: one file, written by one command.

Everywhere else errors are tested by their code. ``sentences.txt`` holds what a user types (Python
behind ``>>>``, a command behind ``$``, a request by its method) and below it the answer.
``make sentences`` writes all answers anew: read the difference before you commit it.
"""

import json
import re
import shlex
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import chdir, closing
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from click.testing import CliRunner
from in_process import InProcess
from waiting import wait_until

import submax
from submax.bandit.store import open_store
from submax.cli import main
from submax.server.app import App
from submax.server.service import Service

FILE = Path(__file__).with_name("sentences.txt")
LOG = "id,action,reward,propensity,age\n1,A,1,0.5,30\n2,B,0,0.5,40\n3,A,0,0.5,50\n4,B,1,0.5,20\n"
EXPERIMENT = """
observations = 20
policies = ["random"]
[environment]
kind = "bernoulli"
arms = 3
"""
FILES = {
    "log.csv": LOG,
    "no-rows.csv": LOG.partition("\n")[0] + "\n",
    "no-propensity.csv": "id,action,reward\n1,A,1\n2,B,0\n",
    "percent.csv": LOG.replace("0.5", "50"),
    "decimal-comma.csv": LOG.replace("0.5", '"0,5"'),
    "words.csv": LOG.replace(",1,", ",yes,"),
    "experiment.toml": EXPERIMENT,
    "typo.toml": EXPERIMENT.replace("observations", "observatons"),
    "no-arms.toml": EXPERIMENT.replace("arms = 3", "arms = 0"),
    "broken.toml": "observations =",
}
SHOP = {
    "name": "shop",
    "actions": ["A", "B", "C"],
    "context": {"age": "number", "country": ["de", "fr"]},
}


class Entry(NamedTuple):
    """What a user types, and the answer."""

    typed: str
    answer: str


def entries(text: str) -> Iterator[Entry]:
    """Yield the entries of the file; lines that begin with # are headings."""
    for block in re.split(r"\n\n+", text.strip()):
        if not block.startswith("# "):
            typed, _, answer = block.partition("\n")
            yield Entry(typed, answer)


class User:
    """Types things into Python, a terminal and an HTTP client, in a folder with some files."""

    def __init__(self, folder: Path):
        self._folder = folder
        for name, text in FILES.items():
            (folder / name).write_text(text, encoding="utf-8")
        self._names = {
            "submax": submax,
            "np": np,
            "Bandit": submax.Bandit,
            "bandit": lambda **options: submax.Bandit(["A", "B", "C"], seed=1, **options),
            "personal": lambda: submax.Bandit(
                ["A", "B"], context={"age": float, "country": ["de", "fr"]}, seed=1
            ),
        }

        service = Service(open_store(folder / "served.db"))
        self._client = InProcess(App(service))
        wait_until(lambda: service.ready)
        self._client.post("/bandits", json=SHOP)

    def close(self) -> None:
        self._client.close()

    def answer(self, typed: str) -> str:
        kind, rest = typed.split(" ", 1)
        with chdir(self._folder), warnings.catch_warnings():
            warnings.simplefilter("error")
            said = {">>>": self._python, "$": self._command}.get(kind, self._request)(typed, rest)
        return re.sub(r"\s+", " ", said.replace(str(self._folder), "…")).strip()

    def _python(self, typed: str, expression: str) -> str:
        try:
            return repr(eval(expression, self._names))
        except (submax.Error, Warning) as error:
            return f"{type(error).__name__} [{getattr(error, 'code', '')}]: {error}"

    def _command(self, typed: str, command: str) -> str:
        # On a busy machine a command would say that it is still reading.
        with patch("submax.cli.logs.running.SILENT_SECONDS", 3600.0):
            done = CliRunner().invoke(main, shlex.split(command)[1:], env={"COLUMNS": "1000"})
        return f"{done.exit_code}: {done.stderr or done.stdout}"

    def _request(self, method: str, rest: str) -> str:
        method, path, *body = method.split(" ", 2)
        content = {"content": body[0]} if body else {}
        headers = {"content-type": "application/json"}
        answer = self._client.request(method, path, headers=headers, **content)
        failed = json.loads(answer.text)
        return f"{answer.status_code} [{failed.get('code')}]: {failed.get('error')}"


@pytest.fixture(scope="module")
def user(tmp_path_factory) -> Iterator[User]:
    with closing(User(tmp_path_factory.mktemp("user"))) as user:
        yield user


@pytest.mark.parametrize("entry", list(entries(FILE.read_text(encoding="utf-8"))))
def test_a_mistake_is_answered_as_reviewed(entry, user):
    assert user.answer(entry.typed) == entry.answer


def write() -> None:
    """Write all answers anew."""
    blocks = []
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(User(Path(folder).resolve())) as user,
    ):
        for block in re.split(r"\n\n+", FILE.read_text(encoding="utf-8").strip()):
            typed = block.partition("\n")[0]
            blocks.append(block if typed.startswith("# ") else f"{typed}\n{user.answer(typed)}")
    FILE.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
