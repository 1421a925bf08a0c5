"""Registries: the classes of a package that implement a contract, found by name."""

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
from submax.core.field_values import converted, required

Kind = TypeVar("Kind")
FILE_MODULE = "submax_file_"
"""The names of modules that were loaded from a file begin with this."""


@dataclass(frozen=True)
class Folder(Generic[Kind]):
    """The classes of one package, by the name of their file: ``batch_flush.py`` is `batch-flush`.

    ``contract`` is the abstract class that they implement, ``word`` what error messages call them.
    A class of the user's own is named by its file and class, ``my_policy.py:MyPolicy``, or by its
    module and class, ``my_package.my_policy:MyPolicy``. An installed package can add classes under
    names of its own by an entry point, whose group is the name of the ``package``. If such a name
    is that of a built-in class, the built-in class is used and a ``PluginWarning`` says so.
    """

    package: str
    contract: type[Kind]
    word: str

    def names(self) -> list[str]:
        """The names of all classes in the folder, and of those that installed packages add."""
        built_in = [name for name in _files(self.package) if _class_in(self, name) is not None]
        _warn_of_hidden_plugins(self)
        return built_in + [name for name in _plugins(self.package) if name not in built_in]

    def classes(self) -> Iterator[type[Kind]]:
        """All classes in the folder, and those of installed packages that can be imported."""
        for name in self.names():
            try:
                yield self.find(name)
            except PluginError as error:
                warnings.warn(f"{error}; it is left out", PluginWarning, stacklevel=2)

    def knows(self, name: str) -> bool:
        """Whether there is a class with this name; no other file is imported."""
        built_in = name in _files(self.package) and _class_in(self, name) is not None
        return built_in or name in _plugins(self.package)

    def find(self, name: str) -> type[Kind]:
        """The class with this name; no other file is imported."""
        if ":" in name:
            return self._from_file(name)
        _warn_of_hidden_plugins(self)
        found = _class_in(self, name) if name in _files(self.package) else None
        if found is None and name in _plugins(self.package):
            return self._from_plugin(name)
        if found is None:
            one_of(
                self.word, name, self.names(), listed_by=f"whose classes dir({self.package}) lists"
            )
            raise AssertionError(f"{self.package} changed while it was read")
        return found

    def kind_of(self, found: type[Kind]) -> str | None:
        """The name by which ``find`` finds a class; None if it has no such name.

        A class that was defined in a function or in the main script has none: the script would be
        run again.
        """
        module, name = found.__module__, found.__qualname__
        if module.startswith(f"{self.package}."):
            return module.rpartition(".")[2].replace("_", "-")
        for plugin, entry in _plugins(self.package).items():
            if entry.value == f"{module}:{name}":
                return plugin
        loaded = sys.modules.get(module)
        if module == "__main__" or getattr(loaded, name, None) is not found:
            return None
        if module.startswith(FILE_MODULE):
            return f"{getattr(loaded, '__file__', '')}:{name}"
        return f"{module}:{name}"

    def build(self, table: Mapping[str, Any], nested: Mapping[str, "Folder[Any]"]) -> Kind:
        """Make an instance from a table with ``kind`` and the fields of the class.

        If the name of a field is in ``nested`` and its value is a table, or a kind alone, the
        folder there builds the value.
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
            key: nested[key].build({"kind": value} if isinstance(value, str) else value, nested)
            if isinstance(value, (str, Mapping)) and key in nested
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
        """The class of this name in the folder, for ``from submax.policies import Thompson``."""
        for name in _files(self.package):
            if name.replace("-", "") == class_name.lower():
                found = _class_in(self, name)
                if found is not None and found.__name__ == class_name:
                    return found
        raise AttributeError(f"module {self.package!r} has no attribute {class_name!r}")

    def classes_of(self, module: types.ModuleType) -> Iterator[type[Kind]]:
        """The classes of one module that implement the contract."""
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


class PluginError(InputError):
    """A class that an installed package adds cannot be used."""

    default_code = "broken-plugin"


class PluginWarning(UserWarning):
    """A class or preset that an installed package adds was left out."""


def classes_within(folder: Folder[Kind], name: str) -> Iterator[type[Kind]]:
    """The built-in classes whose names are parts of this one, as `thompson` is of `thompson-1-9`.

    No other file is imported. If installed packages add classes to the folder, nothing is found:
    the caller must then go through ``classes``, which warns of plugins that are left out.
    """
    if _plugins(folder.package):
        return
    for part in _files(folder.package):
        found = _class_in(folder, part) if f"-{part}-" in f"-{name}-" else None
        if found is not None:
            yield found


@cache
def _plugins(package: str) -> dict[str, EntryPoint]:
    """The classes that installed packages add to a package, by name."""
    return {entry.name: entry for entry in entry_points(group=package)}


@cache
def _warn_of_hidden_plugins(folder: "Folder[Any]") -> None:
    """Warn, once in a process, of plugins that have the name of a built-in class."""
    files = _files(folder.package)
    for name, entry in _plugins(folder.package).items():
        if name in files and _class_in(folder, name) is not None:
            warnings.warn(
                f"an installed package adds the {folder.word} {name!r} ({entry.value}), which is "
                "the name of a built-in one, so that the built-in one is used: rename the entry "
                "point of the package",
                PluginWarning,
                stacklevel=3,
            )


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
    """The class of a file of the folder; None if no class in it implements the contract."""
    module = importlib.import_module(_files(folder.package)[name])
    found = list(folder.classes_of(module))
    if len(found) > 1:
        raise InputError(f"{module.__name__} must hold one {folder.word}, not {found}")
    return found[0] if found else None


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
