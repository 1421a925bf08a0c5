"""A PostgreSQL server in a temporary folder, for benchmarks.

Its programs are those of the folder in the environment variable ``SUBMAX_POSTGRES``, of the path,
or of Debian's package. If the programs were copied from another machine, the shared libraries they
need can be in the folder ``SUBMAX_POSTGRES_LIBRARIES``; no other program is given them.

Data is synced as usual. PostgreSQL refuses to run as root, so if this process is root's, it runs as
another user.
"""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from load.free_port import free_port

VARIABLE, LIBRARIES = "SUBMAX_POSTGRES", "SUBMAX_POSTGRES_LIBRARIES"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "512MB",
    "max_connections": "200",
    "max_wal_size": "4GB",
    "timezone": "GMT",
    "log_timezone": "GMT",
}
START_SECONDS = 30.0


class PostgresServer:
    """A server that is stopped and removed at the end of a ``with``."""

    def __init__(self) -> None:
        self._programs = programs()
        self._port = free_port()
        self._user = _user()

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="submax-postgres-"))
        if self._user:
            shutil.chown(self._folder, self._user["user"], self._user["group"])
        options = ["--username=submax", "--encoding=UTF8", "--locale=C", "--auth=trust"]
        self._run("initdb", *options, "-D", str(self._folder / "data"))
        settings = [f"-c{name}={value}" for name, value in SETTINGS.items()]
        log = (self._folder / "log").open("wb")
        self.process = subprocess.Popen(
            [self._programs / "postgres", "-D", "data", "-p", str(self._port), *settings],
            stdout=log,
            stderr=log,
            cwd=self._folder,
            env=_environment(),
            **self._user,
        )
        self._wait()
        return self

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [self._programs / program, *words],
            capture_output=True,
            text=True,
            cwd=self._folder,
            env=_environment(),
            check=False,
            **self._user,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr.strip()}")

    def _wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                psycopg.connect(self.address("postgres")).close()
                return
            except psycopg.OperationalError as error:
                if self.process.poll() is not None or time.monotonic() > end:
                    log = (self._folder / "log").read_text(errors="replace")
                    raise RuntimeError(f"PostgreSQL does not start: {log}") from error
            time.sleep(0.05)

    def address(self, database: str) -> str:
        """The address of a database."""
        return f"postgresql://submax@127.0.0.1:{self._port}/{database}"

    def create(self, database: str) -> str:
        """Create a database; return its address."""
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {database}")
        return self.address(database)

    def size(self, database: str) -> int:
        """The bytes of a database on disk, with indexes."""
        with psycopg.connect(self.address(database)) as connection:
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        assert row is not None
        return int(row[0])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # At once, because nothing of it is kept.
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        shutil.rmtree(self._folder)


def programs() -> Path:
    """The folder with the programs of PostgreSQL."""
    named, on_path = os.environ.get(VARIABLE), shutil.which("initdb")
    if named or on_path:
        return Path(named) if named else Path(str(on_path)).resolve().parent
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(found, key=lambda file: float(file.parts[-3]), default=None)
    if newest is None:
        raise RuntimeError(
            "there is no PostgreSQL server here: apt-get install postgresql, or name the folder of "
            f"its programs in {VARIABLE}"
        )
    return newest.parent


def _environment() -> dict[str, str]:
    libraries = os.environ.get(LIBRARIES)
    return {**os.environ, **({"LD_LIBRARY_PATH": libraries} if libraries else {})}


def _user() -> dict[str, Any]:
    """The user that runs PostgreSQL, if it must not be this one."""
    if os.geteuid() != 0:
        return {}
    names = {user.pw_name: user for user in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
