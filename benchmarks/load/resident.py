"""The memory of this process (Linux)."""

from pathlib import Path

MEGABYTE = 1e6


def resident() -> float:
    """Megabytes that this process has in memory now."""
    return _field("VmRSS:")


def peak() -> float:
    """The most megabytes that this process has had in memory."""
    return _field("VmHWM:")


def _field(name: str) -> float:
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024 / MEGABYTE
    raise RuntimeError(f"/proc/self/status has no line {name}: memory is measured on Linux only")
