"""Runs the steps of a container file natively, below a folder in place of the root."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PLACES = ("/build", "/opt/submax", "/data")
"""The folders of the container that the steps name."""


class Container:
    """The instructions of a file, and what they have made below ``folder``."""

    def __init__(self, file: Path, folder: Path) -> None:
        text = re.sub(r"\\\n", " ", file.read_text(encoding="utf-8"))
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        self.instructions = [(word, rest) for word, _, rest in (x.partition(" ") for x in lines)]
        self.folder = folder
        self.environment: dict[str, str] = {}
        self._working = "/"

    def last(self, word: str) -> str:
        """The text of the last instruction of a kind."""
        return [rest for one, rest in self.instructions if one == word][-1]

    def here(self, text: str) -> str:
        """A text with the folders of the container replaced by those below the folder."""
        places = "|".join(map(re.escape, PLACES))
        return re.sub(rf"(?<![\w.])({places})\b", lambda found: f"{self.folder}{found[1]}", text)

    def build(self) -> None:
        """Run every instruction that makes files; a second stage has the same folder."""
        steps = {"WORKDIR": self._enter, "COPY": self._copy, "RUN": self._run, "ENV": self._set}
        for word, rest in self.instructions:
            if word in steps:
                steps[word](rest)

    def _enter(self, rest: str) -> None:
        self._working = self.here(rest)
        Path(self._working).mkdir(parents=True, exist_ok=True)

    def _copy(self, rest: str) -> None:
        if rest.startswith("--from="):
            source, target = map(self.here, rest.split()[1:])
            assert source == target, "both stages share a folder here"
            assert Path(target).exists()
            return
        *sources, target = rest.split()
        for source in sources:
            found = Path(self._working, target, "" if (ROOT / source).is_file() else ".")
            if (ROOT / source).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / source, found, ignore=ignored)
            else:
                shutil.copy(ROOT / source, found)

    def _run(self, rest: str) -> None:
        if rest.startswith("useradd"):
            # No user is added to this machine; the folder that the step makes is.
            Path(self.here("/data")).mkdir(exist_ok=True)
            return
        # The environment gets no pip of its own, because installing pip takes longest; and what the
        # package needs is installed here already, and is not downloaded again.
        venv = f"{sys.executable} -m venv --without-pip"
        command = self.here(rest).replace("python -m venv", venv)
        pip = f"{self.here('/opt/submax')}/bin/pip"
        options = "install --quiet --no-deps --no-build-isolation --no-index"
        lent = f"{sys.executable} -m pip --python {pip.removesuffix('pip')}python {options}"
        command = command.replace(f"{pip} install", lent)
        subprocess.run(["bash", "-c", command], cwd=self._working, check=True, timeout=300)
        if "-m venv" in command:
            self._lend_packages()

    def _lend_packages(self) -> None:
        """Let the new environment see the packages of the one that runs the tests."""
        (packages,) = Path(self.here("/opt/submax")).glob("lib/python3*/site-packages")
        lent = next(Path(one) for one in sys.path if one.endswith("site-packages"))
        (packages / "lent.pth").write_text(f"{lent}\n")

    def _set(self, rest: str) -> None:
        name, _, value = self.here(rest).partition("=")
        self.environment[name] = value.replace("$PATH", os.environ["PATH"])

    def command(self) -> list[str]:
        """What the container runs when it is started."""
        return [*json.loads(self.last("ENTRYPOINT")), *json.loads(self.last("CMD"))]

    def health_check(self) -> list[str]:
        """The command of the health check."""
        found: list[str] = json.loads(self.last("HEALTHCHECK").partition(" CMD ")[2])
        return found
