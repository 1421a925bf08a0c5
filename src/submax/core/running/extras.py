"""Checks that optional dependencies are installed."""

from importlib.util import find_spec

from submax.core.errors import MissingExtraError


def require_extra(extra: str, what: str, *modules: str) -> None:
    """Raise a ``MissingExtraError`` unless all modules of an optional extra are installed."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise MissingExtraError(
            f'{what} needs {", ".join(missing)}, not installed here: pip install "submax[{extra}]"'
        )


def require_module(what: str, module: str) -> None:
    """Raise a ``MissingExtraError`` unless a package is installed that no extra contains."""
    if find_spec(module) is None:
        raise MissingExtraError(f"{what} needs {module}, not installed here: pip install {module}")
