"""The directory of one experiment's results, and its manifest."""

import csv
import io
import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from submax._version import __version__
from submax.core.errors import InputError
from submax.core.running.extras import is_installed
from submax.core.running.whole_file import PARTIAL, whole_file
from submax.experiments.specification import Specification
from submax.schema.known_type import known_type

MANIFEST = "manifest.json"
"""The file with the specification, versions and times of an experiment."""
LIBRARIES = ("numpy", "scipy")
"""Required packages whose versions the manifest lists."""
OPTIONAL = {
    "pyarrow": "pyarrow",
    "matplotlib": "matplotlib",
    "jax": "jax",
    "equinox": "equinox",
    "optax": "optax",
    "sklearn": "scikit-learn",
}
"""Optional modules on which results can depend, and the packages that install them."""


def check_directory(directory: Path, specification: Specification) -> None:
    """Refuse a directory that cannot be written or has other contents; nothing is written."""
    _check_writable(directory)
    if not directory.exists() or all(path.suffix == PARTIAL for path in directory.iterdir()):
        return
    if not (directory / MANIFEST).is_file():
        raise InputError(
            f"{directory} has files that are not results of submax, and results need a directory "
            "of their own: choose another --out"
        )
    held = read_manifest(directory)["specification"]
    # The title is compared last, because it often differs together with another value.
    for key, value in sorted(_plain(specification).items(), key=lambda item: item[0] == "title"):
        if held.get(key) != value and not _only_adds_replicas(held, specification, key):
            raise InputError(
                f"{directory} has results of another experiment, with {key} = "
                f"{_short(held.get(key))} instead of {_short(value)}: {_way_out(held, key)}"
            )


def claim_directory(directory: Path, specification: Specification, **facts: Any) -> None:
    """Create the directory with a manifest, or check that it belongs to the experiment.

    If replicas are added, the manifest is written anew, with further ``facts``.
    """
    check_directory(directory, specification)
    directory.mkdir(parents=True, exist_ok=True)
    exists = (directory / MANIFEST).exists()
    started = read_manifest(directory).get("started") if exists else _now()
    if not exists or read_manifest(directory)["specification"] != _plain(specification):
        facts = {"started": started, "finished": None, **facts}
        _write_manifest(directory, specification, facts)


def close_directory(directory: Path, specification: Specification, **facts: Any) -> None:
    """Write into the manifest that all results are there, with further ``facts``."""
    started = read_manifest(directory).get("started")
    _write_manifest(directory, specification, {"started": started, "finished": _now(), **facts})


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read the manifest of a result directory."""
    path = directory / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{directory} is not a directory with results of submax, because {path} cannot be "
            f"read: {_reason(error)}; give the folder of one experiment, {_example(directory)}"
        ) from error
    specification = manifest.get("specification") if isinstance(manifest, dict) else None
    if not isinstance(specification, dict):
        raise InputError(f"{path} was not written by submax; choose another directory")
    return dict(manifest)


def _reason(error: OSError | ValueError) -> str:
    """Return why a file cannot be read, without its path, which the message has already."""
    return str((isinstance(error, OSError) and error.strerror) or error)


def _example(directory: Path) -> str:
    """Return where the folder of an experiment is: in this folder, or in that of a run."""
    found = sorted(directory.glob(f"*/{MANIFEST}"))
    return f"such as {found[0].parent}" if found else "which is inside the --out of a run"


def read_specification(directory: Path) -> Specification:
    """The experiment whose results are in the directory; an unfinished one is refused."""
    manifest = read_manifest(directory)
    if not manifest.get("finished"):
        raise InputError(
            f"the run in {directory} is not finished: give its command again, which continues it"
        )
    try:
        return msgspec.convert(manifest["specification"], known_type(Specification))
    except msgspec.ValidationError as error:
        raise InputError(
            f"the specification in {directory / MANIFEST} was changed and cannot be read: {error}; "
            "run the experiment again with another --out"
        ) from error


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows, all with the keys of the first one, as a CSV file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def _check_writable(directory: Path) -> None:
    """Refuse a directory that cannot be written, by a test in its nearest existing parent."""
    place = directory
    while not place.exists():
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):
            return
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(
            f"cannot write to {directory}: {reason} ({place}); choose another --out"
        ) from error


def _write_manifest(directory: Path, specification: Specification, facts: dict[str, Any]) -> None:
    manifest = {
        "specification": _plain(specification),
        "seed": specification.seed,
        **facts,
        "versions": {
            "submax": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in LIBRARIES},
            **{name: metadata.version(name) for key, name in OPTIONAL.items() if is_installed(key)},
        },
        "commit": _commit(),
        "machine": f"{os.cpu_count()} cores {platform.machine()}, {platform.system()}",
    }
    with whole_file(directory / MANIFEST) as file:
        file.write((json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())


def _only_adds_replicas(held: dict[str, Any], specification: Specification, key: str) -> bool:
    """Whether a value differs because the same sweep is wanted with more replicas.

    The title of a quick look gives the number of replicas, so that it differs as well.
    """
    more = specification.experiment == "sweep" and specification.replicas >= held["replicas"]
    titled = held.get("title", "").partition(" (quick look")[0]
    same_title = titled == specification.title.partition(" (quick look")[0]
    return more and (key == "replicas" or (key == "title" and same_title))


def _way_out(held: dict[str, Any], key: str) -> str:
    """Return what to do if a value differs: replicas can be added, but not taken away."""
    if key == "replicas" and held.get("experiment") == "sweep":
        return (
            f"replicas can be added, but not removed; give --replicas {held[key]} or more (in "
            f"Python replicas={held[key]}), or choose another --out"
        )
    return "choose another --out, or remove the directory"


def _plain(specification: Specification) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(msgspec.json.encode(specification))
    return plain


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _commit() -> str | None:
    """The commit of the sources; None if submax does not run from its repository."""
    root = Path(__file__).parents[4]
    if not (root / "src" / "submax").is_dir():
        return None
    command = ["git", "-C", str(root), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
