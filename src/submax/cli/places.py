"""Bandits of a server and of a store, with the same methods for commands.

``Client`` asks a server. ``StoreClient`` carries out the same operations on a store, in this
process and without HTTP, so a command prints the same wherever the bandit is.
"""

import asyncio
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from submax.bandit import export
from submax.bandit.durable import is_new_file
from submax.bandit.store import Store, open_store
from submax.client.client import Answer, Call, Client, Operations, bandit_path, understood
from submax.core.errors import ContextIgnoredWarning, InputError
from submax.core.processes import variable_text
from submax.server import api
from submax.server.access import Caller
from submax.server.keys import unix_time
from submax.server.messages import Decoder
from submax.server.service import Service

COMMAND_LINE = "command line"  # who made a change, in the audit
CREATING = ("create", "add-key")  # the operations that make a store that does not exist
ATTEMPTS = 3  # requests without an answer: a person who waits can repeat the command


class StoreClient(Operations):
    """A bandit in a store, or, without a name, the whole store.

    What reads also works while a server writes to the file. What changes something opens the store
    for writing, which fails if another process has the SQLite file open. Code that a stored policy
    names is run only with ``trust``.
    """

    def __init__(self, store: str, bandit: str | None, *, trust: bool = False) -> None:
        self._store, self._bandit, self._trust = store, bandit, trust
        self._path = "" if bandit is None else bandit_path(bandit)

    def send(self, call: Call[Answer]) -> Answer:
        operation, path = _operation(call)
        body = operation.body and Decoder(operation.body).decode(call.body or b"{}")
        if operation.name in CREATING and is_new_file(self._store):
            # What is refused leaves no file behind.
            with tempfile.TemporaryDirectory(prefix="submax-new-") as folder:
                self._carried_out(str(Path(folder) / "new.db"), operation, path, body)
        done = self._carried_out(self._store, operation, path, body)
        return understood(200, msgspec.json.encode(done), call)

    def _carried_out(
        self, place: str, operation: api.Operation, path: Mapping[str, str], body: Any
    ) -> Any:
        reads, creates = operation.method == "GET", operation.name in CREATING
        with _opened(place, reads=reads, creates=creates) as store:
            service = Service(store, trust=self._trust, is_local=True)
            call = api.Call(service, Caller(name=COMMAND_LINE), path, body)
            try:
                return asyncio.run(operation.carry_out(call))
            finally:
                service.close()

    def export(self, path: Path, *, before: str | None = None, delete: bool = False) -> int:
        until = None if before is None else unix_time("before", before)
        with _opened(self._store, reads=not delete) as store:
            return export.export(
                store, str(self._bandit), path, before=until, delete=delete, who=COMMAND_LINE
            )


@contextmanager
def _opened(place: str, *, reads: bool, creates: bool = False) -> Iterator[Store]:
    # Opening a store for writing would create it, so one that does not exist is refused here.
    if not reads and not creates:
        open_store(place, read_only=True).close()
    with open_store(place, read_only=reads) as store, warnings.catch_warnings():
        # The commands say this in their answers.
        warnings.simplefilter("ignore", ContextIgnoredWarning)
        yield store


def _operation(call: Call[Any]) -> tuple[api.Operation, dict[str, str]]:
    for one in api.OPERATIONS:
        found = api.path_pattern(one.path).fullmatch(call.path)
        if found is not None and one.method == call.method:
            return one, {word: unquote(text) for word, text in found.groupdict().items()}
    raise LookupError(f"{call.method} {call.path}")


def chosen(names: Sequence[str]) -> str:
    """The name of the only bandit."""
    if len(names) == 1:
        return names[0]
    if not names:
        raise InputError("the store has no bandits: check its name, or create one")
    raise InputError(f"there are several bandits: name one of them: {', '.join(names)}")


def opened(
    place: str, name: str | None = None, *, trust: bool = False, one_is_needed: bool = False
) -> AbstractContextManager[StoreClient | Client]:
    """A bandit of a store or of a server; without a name, the whole store or server.

    If one is needed and not named, it is the only one.
    """
    if one_is_needed and name is None:
        with opened(place) as whole:
            name = chosen(whole.bandits())
    if not place.startswith(("http://", "https://")):
        # Every call opens the store and closes it.
        return nullcontext(StoreClient(place, name, trust=trust))
    _, key = variable_text("SUBMAX_KEY", os.environ)
    return Client(place, name, key=key, attempts=ATTEMPTS)
