"""Optional dependencies."""

from importlib.util import find_spec

from submax.core.errors import MissingExtraError


def require_extra(extra: str, what: str, *modules: str) -> None:
    """Refuse work that needs modules of an extra that is not installed."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise MissingExtraError(
            f'{what} needs {", ".join(missing)}, not installed here: pip install "submax[{extra}]"'
        )
