"""Processes with clients that load servers, and the processor time of processes."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SCRIPT = Path(__file__).with_name("client_load.py")


class Target(NamedTuple):
    """A port, the protocol spoken there, and the request that is sent."""

    port: int
    protocol: str
    request: bytes


class Load(NamedTuple):
    """What the clients measured; ``all_requests`` includes those that were not timed."""

    requests: int
    all_requests: float
    rate: float
    p50_ms: float
    p99_ms: float
    cpu_s: float


def run_clients(targets: Sequence[Target], connections: int, seconds: float) -> Load:
    """Load several ports at the same time, each from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        clients = []
        for number, target in enumerate(targets):
            file = Path(folder) / str(number)
            file.write_bytes(target.request)
            words = [target.protocol, str(target.port), str(file), str(connections), str(seconds)]
            clients.append(
                subprocess.Popen(
                    [sys.executable, str(SCRIPT), *words],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("\n")
            client.stdin.flush()
        answers = [json.loads(client.communicate()[0]) for client in clients]
    count = sum(answer["requests"] for answer in answers)
    return Load(
        count,
        # The clients send requests for a second before they count them.
        count * (seconds + 1.0) / seconds,
        count / seconds,
        max(answer["percentiles_ms"][50] for answer in answers),
        max(answer["percentiles_ms"][99] for answer in answers),
        sum(answer["cpu_s"] for answer in answers),
    )


def cpu_seconds(processes: Sequence[int]) -> float:
    """Processor time of processes so far."""
    total = 0.0
    for process in processes:
        try:
            text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
        except OSError:
            continue  # It has ended.
        # utime and stime, the fields 14 and 15; the name can contain spaces and brackets.
        fields = text.rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total
