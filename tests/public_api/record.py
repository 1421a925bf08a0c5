"""What users can rely on: public names with their parameters, commands with their options, paths.

``python tests/public_api/record.py`` writes current.txt. With ``--release`` it also writes
released.txt, the same for the version that is being released; changes since then must be named in
the changelog, which test_public_api.py checks.
"""

import enum
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).parent
CURRENT, RELEASED = HERE / "current.txt", HERE / "released.txt"
PARTS = (
    "client",
    "environments",
    "estimators",
    "evaluation",
    "gymnasium",
    "plots",
    "policies",
    "simulation",
    "sklearn",
    "strategies",
    "testing",
)
PLAIN = (bool, int, float, str, type(None))
SELF = ("self", "cls")


def public_lines() -> list[str]:
    """One line for each thing that is public, sorted."""
    return sorted({*_python_lines(), *_command_lines(), *_path_lines()})


def _python_lines() -> Iterator[str]:
    import submax

    places = {"submax": {name: getattr(submax, name) for name in submax.__all__}}
    for part in PARTS:
        module = importlib.import_module(f"submax.{part}")
        names = getattr(module, "__all__", None) or dir(module)
        places[f"submax.{part}"] = {name: getattr(module, name) for name in names}
    everything = [one for names in places.values() for one in names.values()]
    classes = {one for one in everything if inspect.isclass(one)}
    described: set[Any] = set()
    for place, names in places.items():
        for name, one in names.items():
            if not name.startswith("_") and _is_ours(one):
                yield f"{place}.{name}{_signature(one)}"
                # A class that has two places is described at the first.
                if one in classes - described:
                    described.add(one)
                    yield from _members(f"{place}.{name}", one, classes)


def _is_ours(one: Any) -> bool:
    return callable(one) and str(getattr(one, "__module__", "")).startswith("submax")


def _members(path: str, one: type, classes: set[type]) -> Iterator[str]:
    """Methods and properties that no public base class has; fields are parameters already."""
    public_bases = [base for base in one.__mro__[1:] if base in classes]
    fields = {*getattr(one, "__dataclass_fields__", ()), *getattr(one, "_fields", ())}
    for name in dir(one):
        owner = next((base for base in one.__mro__ if name in vars(base)), None)
        if name.startswith("_") or name in fields or owner is None:
            continue
        inherited = any(hasattr(base, name) for base in public_bases)
        if owner.__module__.startswith("submax") and not inherited:
            yield f"{path}.{name}{_signature(getattr(one, name))}"


def _signature(one: Any) -> str:
    """The parameters without their types; nothing for properties and enumerations."""
    if not callable(one) or (inspect.isclass(one) and issubclass(one, enum.Enum)):
        return ""
    try:
        parameters = list(inspect.signature(one).parameters.values())
    except (TypeError, ValueError):
        return "(…)"
    words, after_star = [], False
    for one_parameter in parameters:
        if one_parameter.name in SELF and not words:
            continue
        if one_parameter.kind is one_parameter.KEYWORD_ONLY and not after_star:
            words.append("*")
        after_star = after_star or one_parameter.kind in (
            one_parameter.KEYWORD_ONLY,
            one_parameter.VAR_POSITIONAL,
        )
        words.append(_parameter(one_parameter))
    return f"({', '.join(words)})"


def _parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    if one.default is one.empty:
        return f"{stars}{one.name}"
    return f"{one.name}={one.default!r}" if isinstance(one.default, PLAIN) else f"{one.name}=…"


def _command_lines() -> Iterator[str]:
    from submax.cli import main

    yield from _lines_of_group(main, "submax")


def _lines_of_group(group: click.Group, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        yield f"$ {path} {name}"
        if isinstance(command, click.Group):
            yield from _lines_of_group(command, f"{path} {name}")
            continue
        for parameter in command.params:
            options = [*parameter.opts, *parameter.secondary_opts]
            if isinstance(parameter, click.Option):
                yield f"$ {path} {name} {', '.join(options)}"


def _path_lines() -> Iterator[str]:
    from submax.web.server.interface.description import description
    from submax.web.server.interface.operations.all_operations import operations

    for path, methods in description(operations())["paths"].items():
        for method in methods:
            yield f"{method.upper()} {path}"


if __name__ == "__main__":
    text = "".join(f"{line}\n" for line in public_lines())
    CURRENT.write_text(text, encoding="utf-8")
    if "--release" in sys.argv[1:]:
        from submax import __version__

        RELEASED.write_text(f"# submax {__version__}\n{text}", encoding="utf-8")
