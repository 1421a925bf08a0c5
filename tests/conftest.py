"""What every test runs with; it is read before the workers of pytest-xdist are started."""

import contextlib
import functools
import hashlib
import os
import platform
import sys
from collections import Counter
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
    config.pluginmanager.register(SharedBrowser(), "shared browser")
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
        item.user_properties.append(("missing", missing))
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


def pytest_terminal_summary(terminalreporter) -> None:
    """Say in one line what was skipped because it is not installed."""
    counts = Counter(
        name
        for report in terminalreporter.stats.get("skipped", [])
        for key, names in getattr(report, "user_properties", [])
        if key == "missing"
        for name in names
    )
    if counts:
        parts = (
            f"{name} {count} ({requirements.REQUIREMENTS[name].install})"
            for name, count in counts.most_common()
        )
        terminalreporter.write_line(f"skipped: {', '.join(parts)}")


class SharedBrowser:
    """Debian's browser, for tests of several modules; Playwright's own would be downloaded.

    To start it takes two seconds. It is closed before a test that does not use it, because no other
    test of the process can run an event loop while Playwright runs.
    """

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self._browser = None

    def opened(self):
        if self._browser is None:
            from playwright.sync_api import sync_playwright

            with contextlib.ExitStack() as opening:
                playwright = opening.enter_context(sync_playwright())
                launched = playwright.chromium.launch(
                    executable_path=requirements.found("browser"), args=["--no-sandbox"]
                )
                self._browser = opening.enter_context(launched)
                # A browser that does not start must not leave Playwright's event loop running.
                self._open = opening.pop_all()
        return self._browser

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item, nextitem):
        try:
            return (yield)
        finally:
            if nextitem is None or "browser" not in nextitem.fixturenames:
                self._browser = None
                self._open.close()


WINDOW = {"width": 1200, "height": 900}
"""The size of a window of the browser, in pixels."""


@pytest.fixture(scope="module")
def browser(request):
    return request.config.pluginmanager.get_plugin("shared browser").opened()


@pytest.fixture(scope="module")
def tab(browser):
    """Opens pages as tabs of one window for each address, since a new window costs a second.

    Tabs share cookies, but no storage of the session.
    """
    windows = {}

    def tab(address: str):
        if address not in windows:
            windows[address] = browser.new_context(base_url=address, viewport=WINDOW)
            # A window is closed with its last tab.
            windows[address].new_page()
        return windows[address].new_page()

    yield tab
    for window in windows.values():
        window.close()


@pytest.fixture(scope="module")
def kept_tab(tab):
    """Opens one tab for each address, since a new tab has a process of its own to start."""
    return functools.cache(tab)


@pytest.fixture
def quiet_tab(kept_tab):
    """Opens a tab that fails the test if anything is foreign or said in the console.

    Tests of a module that open the same address have the same tab, one after the other.
    """
    said, watched = [], []

    def quiet_tab(address: str):
        page = kept_tab(address)
        page.set_viewport_size(WINDOW)
        watchers = {
            "console": lambda message: said.append(message.text),
            "pageerror": lambda error: said.append(str(error)),
            "request": lambda one: one.url.startswith(address) or said.append(one.url),
        }
        for kind, watcher in watchers.items():
            page.on(kind, watcher)
            watched.append((page, kind, watcher))
        return page

    yield quiet_tab
    for page, kind, watcher in watched:
        page.remove_listener(kind, watcher)
    assert said == []
