"""The folder is the registry: every class in a package that keeps a contract is found by name."""

import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import pkgutil
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

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Folder(Generic[Kind]):
    """The classes of one package, by the name of their file: ``batch_flush.py`` is `batch-flush`.

    A class of the user's own is named by its file and class, ``my_policy.py:MyPolicy``, or by its
    module and class, ``my_package.my_policy:MyPolicy``. An installed package can add classes under
    names of its own by an entry point, whose group is the name of the ``package``.
    """

    package: str
    contract: type[Kind]
    word: str

    def names(self) -> list[str]:
        """The names of all classes in the folder, and of those that installed packages add."""
        here = [name for name in _files(self.package) if _class_in(self, name) is not None]
        return here + [name for name in _plugins(self.package) if name not in here]

    def classes(self) -> Iterator[type[Kind]]:
        """All classes in the folder."""
        for name in self.names():
            try:
                yield self.find(name)
            except PluginError as error:
                warnings.warn(f"{error}; it is left out", PluginWarning, stacklevel=2)

    def find(self, name: str) -> type[Kind]:
        """The class with this name; no other file is imported."""
        if ":" in name:
            return self._from_file(name)
        found = _class_in(self, name) if name in _files(self.package) else None
        if found is None and name in _plugins(self.package):
            return self._from_plugin(name)
        if found is None:
            one_of(self.word, name, self.names())
            raise AssertionError(f"{self.package} changed while it was read")
        return found

    def build(self, table: Mapping[str, Any], nested: Mapping[str, "Folder[Any]"]) -> Kind:
        """Make an instance from a table with ``kind`` and the fields of the class.

        A field that is itself a table, or the kind alone, is built by the folder of its name in
        ``nested``.
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
            if name not in values and _required(field):
                raise InputError(f"{self.word} {table['kind']!r} needs a value for {name!r}")
        types_of = typing.get_type_hints(found)
        made = {
            key: nested[key].build({"kind": value} if isinstance(value, str) else value, nested)
            if isinstance(value, (str, Mapping)) and key in nested
            else _converted(f"{key} of {self.word} {table['kind']!r}", value, types_of[key])
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
            raise InputError(f"{self.word} {table['kind']!r}: {error}") from None

    def exported(self, class_name: str) -> type[Kind]:
        """The class of this name in the folder, for ``from submax.policies import Thompson``."""
        for name in _files(self.package):
            if name.replace("-", "") == class_name.lower():
                found = _class_in(self, name)
                if found is not None and found.__name__ == class_name:
                    return found
        raise AttributeError(f"module {self.package!r} has no attribute {class_name!r}")

    def classes_of(self, module: types.ModuleType) -> Iterator[type[Kind]]:
        """The classes of one file that keep the contract."""
        for _, value in inspect.getmembers(module, inspect.isclass):
            here = value.__module__ == module.__name__
            if here and issubclass(value, self.contract) and not inspect.isabstract(value):
                yield value

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
        """The module of a file, or of an installed package."""
        path = Path(place)
        dotted = all(map(str.isidentifier, place.split(".")))
        if dotted and path.suffix != ".py" and not path.is_file():
            try:
                return importlib.import_module(place)
            except Exception as error:
                raise InputError(
                    f"{self.word} {name!r}: the module {place!r} cannot be imported: "
                    f"{one_line(error)}; give a file as path/to/file.py:Class"
                ) from error
        if not path.is_file():
            raise InputError(f"{self.word} {name!r}: there is no file {place!r}")
        module = _loaded(path)
        if module is None:
            raise InputError(f"{self.word} {name!r}: {place!r} is not a Python file")
        return module

    def _explain(self, module: types.ModuleType, name: str) -> None:
        """Say what keeps a class that is there from being one of this folder."""
        value = getattr(module, name, None)
        if not inspect.isclass(value):
            return
        if not issubclass(value, self.contract):
            raise InputError(f"{name} must be a subclass of {self.contract.__name__}")
        if missing := sorted(getattr(value, "__abstractmethods__", ())):
            raise InputError(f"{name} needs the methods {', '.join(missing)}")


class PluginError(InputError):
    """A class that an installed package adds cannot be used."""

    default_code = "broken-plugin"


class PluginWarning(UserWarning):
    """A class that an installed package adds was left out."""


@cache
def _plugins(package: str) -> dict[str, EntryPoint]:
    """The classes that installed packages add to a package, by name."""
    return {entry.name: entry for entry in entry_points(group=package)}


@cache
def _files(package: str) -> dict[str, str]:
    """The modules of a package and of the packages in it, by the names of their files."""
    path = importlib.import_module(package).__path__
    found = [info.name for info in pkgutil.walk_packages(path, f"{package}.") if not info.ispkg]
    named = {module.rpartition(".")[2].replace("_", "-"): module for module in found}
    assert len(named) == len(found), f"two files of {package} have the same name"
    return dict(sorted(named.items()))


@cache
def _class_in(folder: "Folder[Kind]", name: str) -> type[Kind] | None:
    """The class of a file of the folder; None if no class in it keeps the contract."""
    module = importlib.import_module(_files(folder.package)[name])
    found = list(folder.classes_of(module))
    if len(found) > 1:
        raise InputError(f"{module.__name__} must hold one {folder.word}, not {found}")
    return found[0] if found else None


def _loaded(path: Path) -> types.ModuleType | None:
    """The module of a file, the same one each time; None where it is not a Python file."""
    name = "submax_file_" + hashlib.sha256(str(path.resolve()).encode()).hexdigest()
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


def _required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _converted(where: str, value: Any, wanted: Any) -> Any:
    """Whole numbers pass as floats and lists as tuples; everything else must be what is said."""
    origin, options = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return _first_that_fits(where, value, options)
    if wanted is Any or (origin is typing.Literal and value in options):
        return value
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if dataclasses.is_dataclass(wanted) and isinstance(value, Mapping):
        return _record(where, value, wanted)
    if origin is tuple and isinstance(value, list):
        return tuple(_converted(where, item, options[0]) for item in value)
    if origin is tuple and not isinstance(value, tuple):
        raise InputError(
            f"{where} must be a list, not {value!r}; where a list stands for several "
            "configurations, write a list within a list, [[...]]"
        )
    plain = origin or wanted
    is_type = isinstance(plain, type) and isinstance(value, plain)
    if not is_type or (isinstance(value, bool) and plain is not bool):
        name = getattr(plain, "__name__", str(wanted))
        raise InputError(f"{where} must be of type {name}, not {value!r}")
    return value


def _record(where: str, table: Mapping[str, Any], wanted: Any) -> Any:
    """A record such as the training of a network, from a table of its fields."""
    hints = typing.get_type_hints(wanted)
    for key in table:
        one_of(f"key of {where}:", key, hints)
    return wanted(
        **{key: _converted(f"{key} of {where}", value, hints[key]) for key, value in table.items()}
    )


def _first_that_fits(where: str, value: Any, options: tuple[Any, ...]) -> Any:
    for option in options:
        try:
            return _converted(where, value, option)
        except InputError:
            continue
    names = " or ".join(map(_told, options))
    raise InputError(f"{where} must be of type {names}, not {value!r}")


def _told(option: Any) -> str:
    """A type in words: what a literal may be, else its name."""
    if typing.get_origin(option) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(option)))
    return str(getattr(option, "__name__", option))
