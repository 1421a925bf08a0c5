"""The memory of a process and its descendants, read from ``/proc`` (Linux only)."""

from pathlib import Path

PROC = Path("/proc")


def readable() -> bool:
    """Whether this system lists its processes under ``/proc``."""
    return (PROC / "self" / "status").exists()


def memory(process: int) -> int:
    """The bytes that the process and its descendants have in memory now."""
    return sum(_bytes(PROC / str(member)) for member in family(process))


def family(process: int) -> set[int]:
    """The process and all its descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found, waiting = set(), [process]
    while waiting:
        member = waiting.pop()
        found.add(member)
        waiting += children.get(member, [])
    return found


def _parent(entry: Path) -> int | None:
    try:
        # pid (name) state parent ...; the name can contain spaces and brackets.
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return None  # The process ended in the meantime.


def _bytes(entry: Path) -> int:
    """The proportional set size, which counts shared pages once, or else the resident size."""
    for name, field in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        try:
            lines = (entry / name).read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return 0  # The process ended in the meantime.
