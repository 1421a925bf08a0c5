"""A PostgreSQL server of the tests' own, and a database of it for each test."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

import psycopg
import pytest
import requirements
from server_process import free_port

PASSWORD = "s3cret-of-the-tests"
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "shared_buffers": "16MB",
    "max_connections": "100",
    "log_min_messages": "panic",
    # Tests kill processes, never the machine: the system has what was written.
    "fsync": "off",
    "full_page_writes": "off",
}
START_SECONDS = 30.0


class PostgresServer:
    """A server of the tests' own; it refuses to run as root, and then runs as another user."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.folder = programs, folder
        self.port = free_port()
        self._as = _user()
        if self._as:
            shutil.chown(folder, self._as["user"], self._as["group"])
        self._make()
        self.start()

    def _make(self) -> None:
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        options = ["--no-sync", "--username=submax", "--encoding=UTF8", "--locale=C.UTF-8"]
        options += ["--auth=scram-sha-256", f"--pwfile={password}", "-D", self.folder / "data"]
        subprocess.run(
            [self.programs / "initdb", *options],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **self._as,
        )

    def start(self) -> None:
        settings = [f"-c{name}={value}" for name, value in SETTINGS.items()]
        self._process = subprocess.Popen(
            [self.programs / "postgres", "-D", "data", "-p", str(self.port), *settings],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            **self._as,
        )
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, "the server has ended"
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        self._process.send_signal(how)
        self._process.wait()

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.address("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    def address(self, database: str) -> str:
        return f"postgresql://submax:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def execute(self, database: str, statement: str) -> None:
        with psycopg.connect(self.address(database), autocommit=True) as connection:
            connection.execute(statement)


def _user() -> dict:
    """As whom to run it, where that is not oneself."""
    if os.geteuid() != 0:
        return {}
    # Windows has no such module, and no PostgreSQL is started there.
    import pwd

    names = {user.pw_name: user for user in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@pytest.fixture(scope="session")
def postgres():
    programs = requirements.found("postgresql").resolve().parent
    # Not below pytest's own folder, which another user may not enter.
    folder = Path(tempfile.mkdtemp(prefix="submax-postgres-"))
    try:
        server = PostgresServer(programs, folder)
        yield server
        # At once, without making durable what is thrown away.
        server.stop(signal.SIGQUIT)
    finally:
        shutil.rmtree(folder)


NUMBERS = count()


@pytest.fixture
def postgres_address(postgres) -> str:
    database = f"test_{next(NUMBERS)}"
    postgres.execute("postgres", f"CREATE DATABASE {database}")
    return postgres.address(database)
