"""Values of tables, such as those of TOML files, as values of the fields of a dataclass."""

import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import sys
import types
import typing
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from submax.core.checks import one_of
from submax.core.errors import InputError, one_line


def required(field: "dataclasses.Field[Any]") -> bool:
    """Whether a field of a dataclass has no default."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def converted(where: str, value: Any, wanted: Any) -> Any:
    """The value for a field of type ``wanted``, or an error.

    If that is wanted, an int becomes a float, a float without fraction an int, a list a tuple and
    a table a record; any other value must have the type already.
    """
    origin, options = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return _first_that_fits(where, value, options)
    if wanted is Any or (origin is typing.Literal and value in options):
        return value
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if wanted is int and isinstance(value, float) and value.is_integer():
        # TOML writes a million as 1e6, which is a float.
        return int(value)
    if dataclasses.is_dataclass(wanted) and isinstance(value, Mapping):
        return _record(where, value, wanted)
    if origin is tuple and isinstance(value, list):
        return tuple(converted(where, item, options[0]) for item in value)
    if origin is tuple and not isinstance(value, tuple):
        raise InputError(
            f"{where} must be a list, not {value!r}; if a list stands for several "
            "configurations, write a list within a list, [[...]]",
            parameter=_name(where),
        )
    plain = origin or wanted
    is_type = isinstance(plain, type) and isinstance(value, plain)
    if not is_type or (isinstance(value, bool) and plain is not bool):
        name = getattr(plain, "__name__", str(wanted))
        raise InputError(f"{where} must be of type {name}, not {value!r}", parameter=_name(where))
    return value


def _name(where: str) -> str:
    """The name of a field, with which the place of a value begins."""
    return where.partition(" of ")[0]


def _record(where: str, table: Mapping[str, Any], wanted: Any) -> Any:
    """A dataclass that is no registered class, such as ``Training``, from a table of its fields."""
    hints = typing.get_type_hints(wanted)
    for key in table:
        one_of(f"key of {where}:", key, hints)
    return wanted(
        **{key: converted(f"{key} of {where}", value, hints[key]) for key, value in table.items()}
    )


def _first_that_fits(where: str, value: Any, options: tuple[Any, ...]) -> Any:
    for option in options:
        try:
            return converted(where, value, option)
        except InputError:
            continue
    names = " or ".join(map(_type_name, options))
    raise InputError(f"{where} must be of type {names}, not {value!r}", parameter=_name(where))


def _type_name(option: Any) -> str:
    """The name of a type; of a literal its values."""
    if typing.get_origin(option) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(option)))
    return str(getattr(option, "__name__", option))


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
    names of its own by an entry point, whose group is the name of the ``package``. If such a name
    is that of a built-in class, the built-in class is used and a ``PluginWarning`` says so.
    """

    package: str
    contract: type[Kind]
    word: str
    homes: Mapping[str, str] = dataclasses.field(hash=False, repr=False)

    def names(self) -> list[str]:
        """The names of all built-in classes, and of those that installed packages add."""
        _warn_of_hidden_plugins(self)
        plugins = _plugins(self.package)
        return [*self.homes, *(name for name in plugins if name not in self.homes)]

    def classes(self) -> Iterator[type[Kind]]:
        """All built-in classes, and those of installed packages that can be imported."""
        for name in self.names():
            try:
                yield self.find(name)
            except PluginError as error:
                warnings.warn(f"{error}; it is left out", PluginWarning, stacklevel=2)

    def knows(self, name: str) -> bool:
        """Whether there is a class with this name; nothing is imported."""
        return name in self.homes or name in _plugins(self.package)

    def find(self, name: str) -> type[Kind]:
        """The class with this name; no other module is imported."""
        if ":" in name:
            return self._from_file(name)
        _warn_of_hidden_plugins(self)
        if name in self.homes:
            return self._built_in(name)
        if name in _plugins(self.package):
            return self._from_plugin(name)
        one_of(self.word, name, self.names(), listed_by=f"whose classes dir({self.package}) lists")
        raise AssertionError("one_of refuses unknown names")

    def kind_of(self, found: type[Kind]) -> str | None:
        """The name by which ``find`` finds a class; None if it has no such name.

        A class that was defined in a function or in the main script has none: the script would be
        run again.
        """
        module, name = found.__module__, found.__qualname__
        for built_in, home in self.homes.items():
            if home == f"{module}:{name}":
                return built_in
        for plugin, entry in _plugins(self.package).items():
            if entry.value == f"{module}:{name}":
                return plugin
        loaded = sys.modules.get(module)
        if module == "__main__" or getattr(loaded, name, None) is not found:
            return None
        if module.startswith(FILE_MODULE):
            return f"{getattr(loaded, '__file__', '')}:{name}"
        return f"{module}:{name}"

    def build(self, table: Mapping[str, Any], nested: Mapping[str, "Registry[Any]"]) -> Kind:
        """Make an instance from a table with ``kind`` and the fields of the class.

        If the name of a field is in ``nested`` and its value is a table, or a kind alone, the
        registry there builds the value.
        """
        if not isinstance(table.get("kind"), str):
            raise InputError(f"a {self.word} needs a 'kind', one of: {', '.join(self.names())}")
        found = self.find(table["kind"])
        values = {key: value for key, value in table.items() if key != "kind"}
        if not dataclasses.is_dataclass(found):
            raise InputError(
                f"{self.word} {table['kind']!r} must be a dataclass: "
                "write @dataclass(frozen=True) above the class"
            )
        fields = {field.name: field for field in dataclasses.fields(found)}
        for key in values:
            one_of(f"key of {self.word} {table['kind']!r}:", key, fields)
        for name, field in fields.items():
            if name not in values and required(field):
                raise InputError(
                    f"{self.word} {table['kind']!r} needs a value for {name!r}", parameter=name
                )
        types_of = typing.get_type_hints(found)
        made = {
            key: _part(nested[key], value, nested)
            if isinstance(value, (str, Mapping, list)) and key in nested
            else converted(f"{key} of {self.word} {table['kind']!r}", value, types_of[key])
            for key, value in values.items()
        }
        for key in made.keys() & nested.keys():
            wanted = typing.get_origin(types_of[key]) or types_of[key]
            if isinstance(wanted, type) and not isinstance(made[key], wanted):
                raise InputError(
                    f"{key} of {self.word} {table['kind']!r} must be a {wanted.__name__}, not "
                    f"{made[key]!r}"
                )
        try:
            return found(**made)
        except InputError as error:
            raise InputError(
                f"{self.word} {table['kind']!r}: {error}", parameter=error.parameter
            ) from None

    def exported(self, class_name: str) -> type[Kind]:
        """The built-in class of this name, for ``from submax.policies import Thompson``."""
        for name, home in self.homes.items():
            if home.endswith(f":{class_name}"):
                return self._built_in(name)
        raise AttributeError(f"module {self.package!r} has no attribute {class_name!r}")

    def classes_of(self, module: types.ModuleType) -> Iterator[type[Kind]]:
        """The classes of one module that implement the contract."""
        for _, value in inspect.getmembers(module, inspect.isclass):
            here = value.__module__ == module.__name__
            if here and issubclass(value, self.contract) and not inspect.isabstract(value):
                yield value

    def class_names(self) -> list[str]:
        """The names of the built-in classes, as Python spells them."""
        return [home.rpartition(":")[2] for home in self.homes.values()]

    def _built_in(self, name: str) -> type[Kind]:
        module, _, class_name = self.homes[name].partition(":")
        found: type[Kind] = getattr(importlib.import_module(module), class_name)
        return found

    def _from_plugin(self, name: str) -> type[Kind]:
        entry = _plugins(self.package)[name]
        try:
            found: type[Kind] = entry.load()
        except Exception as error:
            raise PluginError(
                f"{self.word} {name!r} of an installed package cannot be imported: "
                f"{one_line(error)}"
            ) from error
        is_class = inspect.isclass(found) and issubclass(found, self.contract)
        if not is_class or inspect.isabstract(found):
            raise PluginError(
                f"{self.word} {name!r} of an installed package must be a complete subclass "
                f"of {self.contract.__name__}, not {found!r}"
            )
        return found

    def _from_file(self, name: str) -> type[Kind]:
        path_text, _, class_name = name.rpartition(":")
        module = self._module(name, path_text)
        found = {value.__name__: value for value in self.classes_of(module)}
        self._explain(module, class_name)
        one_of(f"{self.word} in {path_text}:", class_name, found)
        return found[class_name]

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
        if not path.is_file():
            raise InputError(
                f"{self.word} {name!r}: there is no file {place!r}: give the path of a Python "
                "file, path/to/file.py:Class, or a module, package.module:Class"
            )
        module = _loaded(path)
        if module is None:
            raise InputError(
                f"{self.word} {name!r}: {place!r} is no Python file: give one that ends in .py"
            )
        return module

    def _explain(self, module: types.ModuleType, name: str) -> None:
        """Refuse a class that does not implement the contract, and say why."""
        value = getattr(module, name, None)
        if isinstance(value, self.contract):
            raise InputError(
                f"{name} is an instance of {type(value).__name__}, and a class is needed: give "
                f"{type(value).__name__} in its place, and the parameters beside the kind"
            )
        if not inspect.isclass(value):
            return
        if not issubclass(value, self.contract):
            raise InputError(f"{name} must be a subclass of {self.contract.__name__}: write it so")
        if missing := sorted(getattr(value, "__abstractmethods__", ())):
            raise InputError(f"{name} needs the methods {', '.join(missing)}: add them")


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


class PluginWarning(UserWarning):
    """A class or preset that an installed package adds was left out."""


@cache
def _plugins(package: str) -> dict[str, EntryPoint]:
    """The classes that installed packages add to a package, by name."""
    return {entry.name: entry for entry in entry_points(group=package)}


@cache
def _warn_of_hidden_plugins(registry: "Registry[Any]") -> None:
    """Warn, once in a process, of plugins that have the name of a built-in class."""
    for name, entry in _plugins(registry.package).items():
        if name in registry.homes:
            warnings.warn(
                f"an installed package adds the {registry.word} {name!r} ({entry.value}), which is "
                "the name of a built-in one, so that the built-in one is used: rename the entry "
                "point of the package",
                PluginWarning,
                stacklevel=3,
            )


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


def names_file(specification: object) -> bool:
    """Return whether a specification names a class outside of submax and the known packages.

    Loading such a class runs code of the user's own, and therefore needs ``trust``.

    >>> names_file({"kind": "unlisted", "policy": {"kind": "my_policy.py:MyPolicy"}})
    True
    >>> names_file({"kind": "classifier", "classifier": "my_package.Mine"})
    True
    >>> names_file({"kind": "classifier", "classifier": "sklearn.naive_bayes.GaussianNB"})
    False
    >>> names_file("rcp-submax")
    False
    """
    if isinstance(specification, str):
        return ":" in specification
    if isinstance(specification, Mapping):
        if any(_is_foreign(specification.get(key, "sklearn")) for key in CLASS_KEYS):
            return True
        return any(names_file(value) for value in specification.values())
    return isinstance(specification, (list, tuple)) and any(map(names_file, specification))


def _is_foreign(name: object) -> bool:
    if isinstance(name, (list, tuple)):
        return any(map(_is_foreign, name))
    return isinstance(name, str) and name.partition(".")[0] not in KNOWN_PACKAGES
