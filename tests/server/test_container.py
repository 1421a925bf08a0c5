"""The steps of the container file are run natively, and nginx is put in front of the server."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import pytest
import requirements
import yaml
from waiting import wait_until

from submax.cli.serving import serve as serve_command

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy"
NOBODY = 65_534
VARIABLES = {one.envvar for one in serve_command.params}
VARIABLES |= {f"{name}_FILE" for name in VARIABLES}
# One process for all these tests, because the steps of the container file take seconds.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("container")]


PLACES = ("/build", "/opt/submax", "/data")
"""The folders of the container that the steps of its file name."""


class Container:
    """The steps of a container file, run natively below a folder in place of the root."""

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


@pytest.fixture(scope="module")
def container():
    """The steps of the file, run below a folder that every user can read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        container = Container(FOLDER / "Dockerfile", Path(folder))
        container.build()
        yield container


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def environment(container):
    """The variables of the container, at a free port."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**inherited, **container.environment, "SUBMAX_PORT": str(free_port())}


@pytest.fixture(scope="module")
def user(container, environment):
    """The user of the server: nobody, if this machine lets nobody run Python."""
    data = Path(container.here("/data"))
    if os.getuid() != 0:
        return {}
    command = ["python", "-c", "import click, submax"]
    try:
        subprocess.run(command, env=environment, user=NOBODY, group=NOBODY, check=True)
    except (OSError, subprocess.CalledProcessError):
        # Python or its packages are in a folder that only its owner may read.
        return {}
    os.chown(data, NOBODY, NOBODY)
    return {"user": NOBODY, "group": NOBODY}


def _answers(address):
    try:
        return httpx.get(f"{address}/healthz", timeout=60).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def server(container, environment, user):
    """A server that was started as the container file says, and the key of its operator."""

    def run(*command, **options):
        return subprocess.run(
            command, env=environment, cwd=container.here("/data"), text=True, capture_output=True,
            timeout=300, check=False, **user, **options,
        )  # fmt: skip

    # Nobody can reach it from elsewhere before there is a key.
    assert run(*container.command()).returncode == 2
    key = run("submax", "keys", "add", "--scope", "admin")
    process = subprocess.Popen(
        container.command(), env=environment, cwd=container.here("/data"),
        stderr=subprocess.DEVNULL, **user,
    )  # fmt: skip
    address = f"http://127.0.0.1:{environment['SUBMAX_PORT']}"
    wait_until(lambda: _answers(address), 180)
    assert run(*container.health_check()).returncode == 0
    yield address, key.stdout.strip()
    process.terminate()
    assert process.wait(300) == 0
    assert run(*container.health_check()).returncode != 0


def test_the_container_serves_with_a_key_and_stops(server, container):
    address, key = server
    headers = {"authorization": f"Bearer {key}"}
    assert httpx.get(f"{address}/bandits", headers=headers, timeout=60).json() == {"bandits": []}
    assert httpx.get(f"{address}/bandits", timeout=60).status_code == 401
    assert (Path(container.here("/data")) / "submax.db").exists()


def test_the_container_file_is_small_and_without_rights(container):
    words = [word for word, _ in container.instructions]
    assert words.count("FROM") == 2
    assert container.last("USER") == "submax"
    assert words.index("USER") > max(n for n, word in enumerate(words) if word == "RUN")
    names = {rest.partition("=")[0] for word, rest in container.instructions if word == "ENV"}
    assert {name for name in names if name.startswith("SUBMAX_")} <= VARIABLES
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [rest.split()[:-1] for word, rest in container.instructions if word == "COPY"]
    assert {f"!{one}" for one in (*copied[0], *copied[1])} <= set(ignored)


def test_compose_names_what_there_is():
    found = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    services = found["services"]
    submax = services["submax"]
    assert (FOLDER / submax["build"]["context"] / submax["build"]["dockerfile"]).exists()
    assert set(submax["environment"]) <= VARIABLES
    for service in services.values():
        assert set(service.get("secrets", [])) <= set(found["secrets"])
    caddy = (FOLDER / "Caddyfile").read_text()
    assert all(f"{{${name}:" in caddy for name in services["proxy"]["environment"])
    assert services["proxy"]["environment"]["SUBMAX_UPSTREAM"].partition(":")[0] in services
    if shutil.which("caddy"):
        command = ["caddy", "validate", "--adapter", "caddyfile", "--config", FOLDER / "Caddyfile"]
        subprocess.run(command, check=True, capture_output=True)


def test_the_unit_of_systemd_is_valid(tmp_path):
    text = (FOLDER / "submax.service").read_text()
    lines = [line.partition("=")[2] for line in text.splitlines() if line[:12] == "Environment="]
    assert {line.partition("=")[0] for line in lines} <= VARIABLES
    assert "User=submax" in text
    assert "ExecStart=/opt/submax/bin/submax serve" in text
    if shutil.which("systemd-analyze"):
        unit = tmp_path / "submax.service"
        unit.write_text(text.replace("/opt/submax/bin/submax", "/bin/true"))
        command = ["systemd-analyze", "verify", unit]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def accepts(port):
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def proxy(server, tmp_path):
    """The address of nginx, with its file, in front of the server."""
    certificate, secret = tmp_path / "a.pem", tmp_path / "a.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-subj", "/CN=bandits.example", "-keyout", secret, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    port, text = free_port(), (FOLDER / "nginx.conf").read_text()
    for old, new in {
        "listen 443": f"listen 127.0.0.1:{port}",
        "/etc/ssl/certs/bandits.example.pem": str(certificate),
        "/etc/ssl/private/bandits.example.key": str(secret),
        "127.0.0.1:8000": server[0].rpartition("/")[2],
    }.items():
        assert old in text
        text = text.replace(old, new)
    paths = "".join(
        f"{name}_temp_path {tmp_path};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; master_process off; pid {tmp_path}/pid; error_log {tmp_path}/error;\n"
        f"events {{}}\nhttp {{ access_log off;\n{paths}{text}}}\n"
    )
    options = ["-p", tmp_path, "-e", tmp_path / "error", "-c", tmp_path / "nginx.conf"]
    process = subprocess.Popen([requirements.found("nginx"), *options])
    wait_until(lambda: process.poll() is not None or accepts(port))
    assert process.poll() is None, (tmp_path / "error").read_text()
    yield f"https://127.0.0.1:{port}"
    process.terminate()
    process.wait(300)


@pytest.mark.needs("nginx", "openssl")
def test_nginx_passes_decisions_on(server, proxy):
    headers = {"authorization": f"Bearer {server[1]}", "host": "bandits.example"}
    with httpx.Client(base_url=proxy, headers=headers, verify=False, timeout=60) as client:
        answer = client.get("/bandits")
        assert answer.json() == {"bandits": []}
        # The proxy names every request, so that its log and that of the server can be joined.
        assert len(answer.headers["x-request-id"]) == 32
        assert client.get("/metrics").status_code == 200
        own_page = {"origin": "https://bandits.example"}
        assert client.get("/bandits", headers=own_page).status_code == 200
        other_page = {"origin": "https://other.example"}
        assert client.get("/bandits", headers=other_page).status_code == 403
        # A browser names the port in both headers, if it is another than 443.
        elsewhere = {"host": "bandits.example:8443", "origin": "https://bandits.example:8443"}
        assert client.post("/login", headers=elsewhere).status_code == 200
