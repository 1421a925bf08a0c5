"""Checks that optional dependencies are installed."""

from importlib.util import find_spec

from submax.core.errors import MissingExtraError


def is_installed(module: str) -> bool:
    """Return whether a module can be imported, without importing it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # The package that contains the module is not installed.
        return False


def missing_extra(extra: str, what: str, *modules: str) -> str:
    """Return a sentence that names the extra to install; empty if all modules are installed."""
    missing = [module for module in modules if not is_installed(module)]
    if not missing:
        return ""
    return f'{what} needs {", ".join(missing)}, not installed here: pip install "submax[{extra}]"'


def require_extra(extra: str, what: str, *modules: str) -> None:
    """Raise a ``MissingExtraError`` unless all modules of an optional extra are installed."""
    if sentence := missing_extra(extra, what, *modules):
        raise MissingExtraError(sentence)


def require_module(what: str, module: str) -> None:
    """Raise a ``MissingExtraError`` unless a package is installed that no extra contains."""
    if not is_installed(module):
        raise MissingExtraError(f"{what} needs {module}, not installed here: pip install {module}")
