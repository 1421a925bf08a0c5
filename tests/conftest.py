"""What every test runs with; it is read before the workers of pytest-xdist are started."""

import hashlib
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from hypothesis import settings

from submax.core.processes import prefer_single_thread

settings.register_profile("submax", deadline=None, derandomize=True, database=None)
settings.load_profile("submax")

CACHE = Path(__file__).parents[1] / ".pytest_cache"
SOURCES = Path(__file__).parents[1] / "src"
SLOW = Path(__file__).with_name("slow.txt")
"""The tests that ``pytest --durations=0 --durations-min=0.15`` has listed."""
XLA_FLAGS = (
    "--xla_cpu_multi_thread_eigen=false",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
    "--xla_backend_optimization_level=0",
)
MISSING = "strict: nothing may be missing here, and this test would be skipped: "


def _compile_quickly() -> None:
    """Programs of a few steps are compiled with less care, once, and kept between runs.

    Half the compile time of these small networks goes into fused loops, and a part of the rest into
    pieces of programs that are compiled in parallel. A JAX whose options are not known is left
    as it is, since an unknown flag ends the process.
    """
    try:
        known = version("jaxlib").startswith("0.10.")
    except PackageNotFoundError:
        return
    if known and "XLA_FLAGS" not in os.environ:
        os.environ["XLA_FLAGS"] = " ".join(XLA_FLAGS)
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE / f"jax-{_processor()}"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")


def _processor() -> str:
    """Programs are compiled for one kind of processor: a name for what it can do."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else list(platform.uname())
    features = [line for line in lines if line.startswith(("flags", "Features"))] or lines
    return hashlib.sha256(features[0].encode()).hexdigest()[:12]


def _compile_python_once() -> None:
    """Processes that tests start would compile the whole library anew, each of them."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


_compile_python_once()
_compile_quickly()
prefer_single_thread()
# Several folders of tests import these modules by name.
sys.path.insert(0, str(Path(__file__).with_name("support")))

import requirements  # noqa: E402 (found on the path that the line above extends)


@pytest.fixture
def short_training(monkeypatch) -> None:
    """Programs are not optimized: that would take longer than to run them for a few steps."""
    monkeypatch.setattr("submax.models.nn.training.CPU_LEVEL", 0)


@pytest.fixture(autouse=True)
def compile_quickly(request) -> None:
    """Networks of a few units are trained for a few steps, see ``short_training``.

    Groups of tests that train networks have the name of a class. Tests whose trainings are long
    have the mark ``long_training``.
    """
    group = request.node.get_closest_marker("xdist_group")
    trains = group is not None and group.args[0][0].isupper()
    if trains and not request.node.get_closest_marker("long_training"):
        request.getfixturevalue("short_training")


@pytest.fixture(scope="session")
def seed() -> int:
    """Tests that take it pass for any seed; ``SUBMAX_TEST_SEED`` chooses another."""
    return int(os.environ.get("SUBMAX_TEST_SEED", "0"))


def pytest_configure(config) -> None:
    config.addinivalue_line("markers", "slow: takes long; make test-fast leaves it out")
    config.addinivalue_line("markers", "soak: takes minutes; only make soak runs it")
    config.addinivalue_line("markers", "needs: parts of tests/support/requirements.py")
    config.pluginmanager.register(ModulesWithExamples())
    config.addinivalue_line("markers", "long_training: its programs are compiled with care")
    # A kept program may be read while another process writes it: then it is compiled again.
    for what in ("reading", "writing"):
        beginning = f"ignore:Error {what} persistent compilation cache entry"
        config.addinivalue_line("filterwarnings", beginning)


class ModulesWithExamples:
    """Leaves out the modules of the library without a doctest.

    To import all modules and to look into every docstring takes seconds in each worker.
    """

    def pytest_ignore_collect(self, collection_path) -> bool | None:
        if collection_path.suffix != ".py" or SOURCES not in collection_path.parents:
            return None
        return None if b">>> " in collection_path.read_bytes() else True


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Tests have no doctests; to look for some would take seconds in every worker."""
    found = yield
    return [one for one in found if type(one) is pytest.Module]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items, config) -> None:
    """Slow tests first, so that no worker is left alone with one at the end.

    Tests are in a group since they compile the same programs, which is slow.
    """
    if "SUBMAX_SOAK" not in os.environ:
        soak = [item for item in items if item.get_closest_marker("soak")]
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=soak)
    listed = set(SLOW.read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.get_closest_marker("xdist_group") or item.nodeid in listed:
            item.add_marker(pytest.mark.slow)
        # A fixture may also be named by a parameter, and asked for when the test runs.
        parameters = getattr(item, "callspec", None) and item.callspec.params.values()
        named = {one for one in parameters or () if isinstance(one, str)}
        for fixture in requirements.FIXTURES.keys() & {*getattr(item, "fixturenames", ()), *named}:
            item.add_marker(pytest.mark.needs(requirements.FIXTURES[fixture]))
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_runtest_setup(item) -> None:
    """Skip a test if something that it needs is missing."""
    needed = {name for mark in item.iter_markers("needs") for name in mark.args}
    missing = requirements.missing(sorted(needed))
    if missing:
        pytest.skip(requirements.reason(missing))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """With ``SUBMAX_TEST_STRICT=1`` a test that would be skipped fails."""
    report = yield
    return _strict(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    return _strict(report)


def _strict(report):
    expected = hasattr(report, "wasxfail")
    if report.skipped and not expected and os.environ.get("SUBMAX_TEST_STRICT") == "1":
        _, _, reason = report.longrepr
        report.outcome, report.longrepr = "failed", MISSING + reason
    return report
