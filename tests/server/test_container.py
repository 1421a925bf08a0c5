"""A server starts as the container file says, and nginx is put in front of it."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import requirements
import yaml
from server_process import free_port
from waiting import wait_until

from submax.cli.serving import serve as serve_command

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy"
VARIABLES = {one.envvar for one in serve_command.params}
VARIABLES |= {f"{name}_FILE" for name in VARIABLES}
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("container")]


def instructions():
    """The words of the container file, each with the rest of its line."""
    text = re.sub(r"\\\n", " ", (FOLDER / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def last(word):
    return [rest for one, rest in instructions() if one == word][-1]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that was started as the container file says, and the key of its operator."""
    data = tmp_path_factory.mktemp("data")
    environment = dict(os.environ)
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    for word, rest in instructions():
        name, _, value = rest.partition("=")
        if word == "ENV" and name != "PATH":
            environment[name] = value.replace("/data", str(data))
    environment["SUBMAX_PORT"] = str(free_port())
    command = [*json.loads(last("ENTRYPOINT")), *json.loads(last("CMD"))]
    healthy = json.loads(last("HEALTHCHECK").partition(" CMD ")[2])

    def run(*command):
        options = {"text": True, "capture_output": True, "timeout": 300, "check": False}
        return subprocess.run(command, env=environment, cwd=data, **options)

    # Nobody can reach it from elsewhere before there is a key.
    assert run(*command).returncode == 2
    key = run("submax", "keys", "add", "--scope", "admin").stdout.strip()
    process = subprocess.Popen(command, env=environment, cwd=data, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{environment['SUBMAX_PORT']}"
    wait_until(lambda: run(*healthy).returncode == 0, 180)
    assert (data / "submax.db").exists()
    yield address, key
    process.terminate()
    assert process.wait(300) == 0
    assert run(*healthy).returncode != 0


def test_the_container_serves_with_a_key_and_stops(server):
    address, key = server
    for headers, status in (({"authorization": f"Bearer {key}"}, 200), ({}, 401)):
        assert httpx.get(f"{address}/bandits", headers=headers, timeout=60).status_code == status


def test_files_name_variables_and_files_that_exist():
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["submax"]
    unit = (FOLDER / "submax.service").read_text()
    names = {rest.partition("=")[0] for word, rest in instructions() if word == "ENV"}
    names |= {*compose["environment"], *re.findall(r"^Environment=(\w+)", unit, re.MULTILINE)}
    assert {name for name in names if name.startswith("SUBMAX_")} <= VARIABLES
    assert (FOLDER / compose["build"]["context"] / compose["build"]["dockerfile"]).exists()
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for copied in [rest.split()[:-1] for word, rest in instructions() if word == "COPY"][:2]:
        assert all(f"!{one}" in ignored and (ROOT / one).exists() for one in copied)
    # Neither runs as root.
    assert last("USER") == "submax"
    assert "User=submax" in unit


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
