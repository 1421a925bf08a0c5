"""Check the files of the wheel and of the source distribution in a folder.

The exit status is 1 if a file is missing or should not be there; each problem is one line.
"""

import argparse
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
MAX_BYTES = 1_000_000
"""The most bytes of a file."""
SOURCES = "src/submax/"
UNWANTED_FOLDERS = {"tests", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
UNWANTED_ENDINGS = {".pyc", ".pyo", ".so", ".db", ".parquet", ".whl"}
DOCUMENTS = ("README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml")
"""Files that the source distribution has beside the sources."""
LIGHT = {"numpy", "scipy", "click", "rich", "msgspec", "safetensors", "httpx", "threadpoolctl"}
"""All that ``pip install submax`` may require; other packages belong to extras."""


def main() -> int:
    """Print the problems of the distributions in the given folder; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder with the distributions")
    folder = parser.parse_args().folder
    problems = [*check_folder(folder, tracked_sources(ROOT))]
    for problem in problems:
        print(problem)
    print(f"{folder}: {len(problems)} problems")
    return int(bool(problems))


def tracked_sources(root: Path) -> set[str]:
    """Return the paths below the package of all files that git tracks, such as ``py.typed``."""
    command = ["git", "-C", str(root), "ls-files", SOURCES]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {line.removeprefix(SOURCES) for line in listed.splitlines()}


def check_folder(folder: Path, sources: set[str]) -> Iterator[str]:
    """Yield the problems of the one wheel and the one source distribution in a folder."""
    for ending, check in ((".whl", check_wheel), (".tar.gz", check_source)):
        found = sorted(folder.glob(f"*{ending}"))
        if len(found) != 1:
            yield f"{folder} has {len(found)} files *{ending}, and one is allowed: build again"
        for path in found:
            yield from (f"{path.name}: {problem}" for problem in check(path, sources))


def check_wheel(path: Path, sources: set[str]) -> Iterator[str]:
    """Yield the problems of a wheel: its files, its licence and what it requires."""
    with zipfile.ZipFile(path) as wheel:
        sizes = {one.filename: one.file_size for one in wheel.infolist() if not one.is_dir()}
        yield from _problems(sizes, sources, "submax/")
        information = {name.split("/")[-1]: name for name in sizes if ".dist-info/" in name}
        for wanted in ("METADATA", "entry_points.txt", "LICENSE"):
            if wanted not in information:
                yield f"{wanted} is missing from the .dist-info folder"
        if "METADATA" in information:
            text = wheel.read(information["METADATA"]).decode()
            yield from _heavy(text.splitlines())


def check_source(path: Path, sources: set[str]) -> Iterator[str]:
    """Yield the problems of a source distribution."""
    with tarfile.open(path) as archive:
        members = [one for one in archive.getmembers() if one.isfile()]
    # Every path begins with the name and version of the distribution.
    sizes = {one.name.partition("/")[2]: one.size for one in members}
    yield from _problems(sizes, sources, SOURCES)
    yield from (f"{name} is missing" for name in DOCUMENTS if name not in sizes)


def _problems(sizes: dict[str, int], sources: set[str], package: str) -> Iterator[str]:
    """Yield files that are missing, unwanted or too large, and scripts without a licence."""
    wanted = sorted(package + name for name in sources)
    yield from (f"{name} is missing" for name in wanted if name not in sizes)
    for name, size in sizes.items():
        path = PurePosixPath(name)
        if UNWANTED_FOLDERS & {*path.parts} or path.suffix in UNWANTED_ENDINGS:
            yield f"{name} should not be distributed"
        if size > MAX_BYTES:
            yield f"{name} has {size} bytes, and at most {MAX_BYTES} are allowed"
        if path.parent.name == "vendor" and path.suffix in (".js", ".css"):
            licence = str(path.parent / f"{path.name.partition('.')[0]}.LICENSE.txt")
            if licence not in sizes:
                yield f"{name} is vendored without its licence, {licence}"


def _heavy(metadata: Iterable[str]) -> Iterator[str]:
    """Yield requirements of the base that are not light."""
    for line in metadata:
        if line.startswith("Requires-Dist: ") and "extra ==" not in line:
            requirement = line.removeprefix("Requires-Dist: ")
            name = requirement.partition(";")[0].rstrip("0123456789.,<>=!~ ")
            if name not in LIGHT:
                yield f"the base requires {requirement}: only {', '.join(sorted(LIGHT))} are light"


if __name__ == "__main__":
    sys.exit(main())
