"""Classes by name, built from tables such as those of TOML files."""

import contextlib
import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np

from submax.core.checks import JSON_TYPES, instance_of, one_of
from submax.core.decoding import known_type
from submax.core.errors import InputError, one_line


def converted(where: str, value: Any, wanted: Any) -> Any:
    """Return the value for a field of type ``wanted``, by `msgspec.convert`, or raise.

    A list becomes a tuple, a table a record, a whole number a float. A float without fraction
    becomes an int, because TOML writes a million as 1e6. Any other value must have the type.
    """
    options, name = typing.get_args(wanted) or (wanted,), where.partition(" of ")[0]
    records: list[Any] = list(filter(dataclasses.is_dataclass, options))
    if records and isinstance(value, Mapping):
        hints = typing.get_type_hints(records[0])
        for key in value:
            one_of(f"key of {where}:", key, hints)
        return records[0](
            **{key: converted(f"{key} of {where}", one, hints[key]) for key, one in value.items()}
        )
    for plain in (value, _whole(value)):
        with contextlib.suppress(msgspec.ValidationError):
            return msgspec.convert(plain, known_type(wanted))
    if typing.get_origin(wanted) is tuple and not isinstance(value, (list, tuple)):
        raise InputError(
            f"{where} must be a list, not {value!r}; if a list stands for several "
            "configurations, write a list within a list, [[...]]",
            parameter=name,
        )
    raise InputError(f"{where} must be {_type_name(wanted)}, not {value!r:.80}", parameter=name)


def _whole(value: Any) -> Any:
    """Return plain data in which floats without fraction are ints; numpy numbers are Python's."""
    if isinstance(value, Mapping):
        return {key: _whole(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) < MOST_EXACT
    return int(value) if is_whole else value


def _type_name(wanted: Any) -> str:
    """Name a type for people; of a literal, its values."""
    origin, options = typing.get_origin(wanted), typing.get_args(wanted)
    if origin is typing.Literal:
        return " or ".join(map(repr, options))
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_type_name, options))
    name = getattr(origin or wanted, "__name__", str(wanted))
    return {**JSON_TYPES, "list": "a list", "dict": "a table"}.get(name, f"of type {name}")


MOST_EXACT = 2.0**53
"""Whole floats below this are exact."""

Kind = TypeVar("Kind")
FILE_MODULE = "submax_file_"
"""The names of modules that were loaded from a file begin with this."""


@dataclass(frozen=True)
class Registry(Generic[Kind]):
    """The classes that implement a ``contract``, by name.

    ``homes`` maps the name of each built-in class to ``module:Class``; the module is imported when
    one of its classes is first asked for.
    ``word`` is what error messages call these classes.

    A class of the user's own is named by its file and class, ``my_policy.py:MyPolicy``, or by its
    module and class, ``my_package.my_policy:MyPolicy``. An installed package can add classes under
    names of its own by an entry point, whose group is the name of the ``package``. The name of a
    built-in class stays with the built-in one.
    """

    package: str
    contract: type[Kind]
    word: str
    homes: Mapping[str, str] = dataclasses.field(hash=False, repr=False)

    def names(self) -> list[str]:
        """The names of all built-in classes, and of those that installed packages add."""
        return list(dict.fromkeys([*self.homes, *_plugins(self.package)]))

    def knows(self, name: str) -> bool:
        """Whether there is a class with this name; nothing is imported."""
        return name in self.homes or name in _plugins(self.package)

    def find(self, name: str) -> type[Kind]:
        """The class with this name; no other module is imported."""
        if ":" in name:
            return self._of_the_user(name)
        if name in self.homes:
            module, _, class_name = self.homes[name].partition(":")
            return getattr(importlib.import_module(module), class_name)
        if name in _plugins(self.package):
            who = f"{self.word} {name!r} of an installed package"
            try:
                found = _plugins(self.package)[name].load()
            except Exception as error:
                raise PluginError(f"{who} cannot be imported: {one_line(error)}") from error
            return self._checked(found, who, PluginError)
        one_of(self.word, name, self.names(), listed_by=f"see dir({self.package})")
        raise AssertionError("one_of refuses unknown names")

    def kind_of(self, found: type[Kind]) -> str | None:
        """The name by which ``find`` finds a class; None if it has no such name.

        A class that was defined in a function or in the main script has none: the script would be
        run again.
        """
        module, name = found.__module__, found.__qualname__
        added = {kind: entry.value for kind, entry in _plugins(self.package).items()}
        for kind, home in {**added, **self.homes}.items():
            if home == f"{module}:{name}":
                return kind
        loaded = sys.modules.get(module)
        if module == "__main__" or getattr(loaded, name, None) is not found:
            return None
        place = getattr(loaded, "__file__", "") if module.startswith(FILE_MODULE) else module
        return f"{place}:{name}"

    def build(self, table: Mapping[str, Any], nested: Mapping[str, "Registry[Any]"]) -> Kind:
        """Make an instance from a table with ``kind`` and the fields of the class.

        If the name of a field is in ``nested`` and its value is a table, or a kind alone, the
        registry there builds the value.
        """
        kind = table.get("kind")
        if not isinstance(kind, str):
            raise InputError(f"a {self.word} needs a 'kind', one of: {', '.join(self.names())}")
        found, what = self.find(kind), f"{self.word} {kind!r}"
        if not dataclasses.is_dataclass(found):
            raise InputError(
                f"{what} must be a dataclass: write @dataclass(frozen=True) above the class"
            )
        types_of, made = typing.get_type_hints(found), {}
        fields = {field.name: field for field in dataclasses.fields(found)}
        for key, value in table.items():
            if key == "kind":
                continue
            one_of(f"key of {what}:", key, fields)
            if key in nested:
                made[key] = _part(nested[key], value, nested)
                wanted = typing.get_origin(types_of[key]) or types_of[key]
                instance_of(f"{key} of {what}", made[key], wanted, f"one of {nested[key].package}")
            else:
                made[key] = converted(f"{key} of {what}", value, types_of[key])
        for name, field in fields.items():
            no_default = field.default is field.default_factory is dataclasses.MISSING
            if name not in made and no_default:
                raise InputError(f"{what} needs a value for {name!r}", parameter=name)
        try:
            return found(**made)
        except InputError as error:
            raise InputError(f"{what}: {error}", parameter=error.parameter) from None

    def modules(self) -> dict[str, str]:
        """The module of each built-in class, by its name in Python."""
        return {
            name: module
            for module, _, name in (home.partition(":") for home in self.homes.values())
        }

    def class_names(self) -> list[str]:
        """The classes of the package itself, as Python spells them; those of research are not."""
        homes = (home for home in self.homes.values() if home.startswith(self.package))
        return [home.rpartition(":")[2] for home in homes]

    def _of_the_user(self, name: str) -> type[Kind]:
        """A class of the user's own that implements the contract; another one is refused."""
        place, _, class_name = name.rpartition(":")
        module = self._module(name, place)
        found = getattr(module, class_name, None)
        if found is None:
            known = [one for one, kind in vars(module).items() if self._fits(kind)]
            one_of(f"{self.word} in {place}:", class_name, known)
        return self._checked(found, class_name, InputError)

    def _fits(self, found: object) -> bool:
        """Whether this is a class that implements the contract with all its methods."""
        fits = inspect.isclass(found) and issubclass(found, self.contract)
        return fits and not inspect.isabstract(found)

    def _checked(self, found: Any, who: str, error: type[InputError]) -> type[Kind]:
        if not (inspect.isclass(found) and issubclass(found, self.contract)):
            what = "a function" if inspect.isfunction(found) else f"{found!r:.80}"
            raise error(
                f"{who} must be a subclass of {self.contract.__name__}, not {what}: derive it from "
                f"that class, and give the parameters beside the kind"
            )
        if missing := sorted(getattr(found, "__abstractmethods__", ())):
            raise error(f"{who} needs the methods {', '.join(missing)}: add them")
        return found

    def _module(self, name: str, place: str) -> types.ModuleType:
        """The module at ``place``: a Python file, or the dotted name of a module."""
        path = Path(place)
        dotted = all(map(str.isidentifier, place.split(".")))
        if dotted and path.suffix != ".py" and not path.is_file():
            try:
                return importlib.import_module(place)
            except Exception as error:
                raise InputError(
                    f"{self.word} {name!r}: the module {place!r} cannot be imported "
                    f"({one_line(error)}): put it on the Python path, or give a file as "
                    "path/to/file.py:Class"
                ) from error
        module = _loaded(path) if path.is_file() else None
        if module is None:
            raise InputError(
                f"{self.word} {name!r}: there is no Python file {place!r}: give its path, "
                "path/to/file.py:Class, or a module, package.module:Class"
            )
        return module


def _part(registry: Registry[Any], value: Any, nested: Mapping[str, Registry[Any]]) -> Any:
    """An instance from a kind or a table; a tuple of them from a list."""
    if isinstance(value, list):
        return tuple(_part(registry, one, nested) for one in value)
    if not isinstance(value, (str, Mapping)):
        return value
    return registry.build({"kind": value} if isinstance(value, str) else value, nested)


class PluginError(InputError):
    """A class that an installed package adds cannot be used."""

    default_code = "broken-plugin"


@cache
def _plugins(package: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=package)}


def _loaded(path: Path) -> types.ModuleType | None:
    """The module of a file, executed once for each file; None if it is not a Python file."""
    name = FILE_MODULE + hashlib.sha256(str(path.resolve()).encode()).hexdigest()
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickle look a class up through the name of its module.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise InputError(f"{path} cannot be imported: {one_line(error)}") from error
    return module


KNOWN_PACKAGES = ("sklearn", "lightgbm", "xgboost", "catboost")
"""Packages whose models may be named without ``trust``: importing them runs known code."""

CLASS_KEYS = ("classifier", "regressor")
"""Parameters whose value is the dotted name of a class."""


def references_user_code(specification: object) -> bool:
    """Return whether a specification names a class outside of submax and the known packages.

    Loading such a class runs user code, which needs ``trust``.

    >>> references_user_code({"kind": "unlisted", "policy": {"kind": "my_policy.py:MyPolicy"}})
    True
    >>> references_user_code({"kind": "classifier", "classifier": "my_package.Mine"})
    True
    >>> references_user_code({"kind": "classifier", "classifier": "sklearn.naive_bayes.GaussianNB"})
    False
    """
    if isinstance(specification, str):
        # A text with parameters may set the class; as a table it says which.
        return ":" in specification or any(f"{key}=" in specification for key in CLASS_KEYS)
    if isinstance(specification, Mapping):
        if any(_is_foreign(specification.get(key, "sklearn")) for key in CLASS_KEYS):
            return True
        # The name of a table is for people.
        specification = [value for key, value in specification.items() if key != "name"]
    return isinstance(specification, (list, tuple)) and any(
        map(references_user_code, specification)
    )


def _is_foreign(name: object) -> bool:
    if isinstance(name, (list, tuple)):
        return any(map(_is_foreign, name))
    return isinstance(name, str) and name.partition(".")[0] not in KNOWN_PACKAGES
