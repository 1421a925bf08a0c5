"""The folder is the registry: every class in a package that keeps a contract is found by name."""

import dataclasses
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from submax.core.checks import one_of
from submax.core.errors import InvalidValue

Kind = TypeVar("Kind")


@dataclass(frozen=True)
class Folder(Generic[Kind]):
    """The classes of one package, by the name of their file: ``batch_flush.py`` is `batch-flush`.

    A class of the user's own is named by its file and class, ``my_policy.py:MyPolicy``.
    """

    package: str
    contract: type[Kind]
    word: str

    def names(self) -> list[str]:
        """The names of all classes in the folder."""
        return [name for name, _ in self._modules()]

    def classes(self) -> Iterator[type[Kind]]:
        """All classes in the folder."""
        for name in self.names():
            yield self.find(name)

    def find(self, name: str) -> type[Kind]:
        """The class with this name."""
        if ":" in name:
            return self._from_file(name)
        modules = dict(self._modules())
        one_of(self.word, name, modules)
        return modules[name]

    def build(self, table: Mapping[str, Any], nested: Mapping[str, "Folder[Any]"]) -> Kind:
        """Make an instance from a table with ``kind`` and the fields of the class.

        A field that is itself a table is built by the folder of its name in ``nested``.
        """
        if not isinstance(table.get("kind"), str):
            raise InvalidValue(f"a {self.word} needs a 'kind', one of: {', '.join(self.names())}")
        found = self.find(table["kind"])
        values = {key: value for key, value in table.items() if key != "kind"}
        if not dataclasses.is_dataclass(found):
            raise InvalidValue(
                f"{self.word} {table['kind']!r} must be a dataclass: "
                "write @dataclass(frozen=True) above the class"
            )
        fields = {field.name: field for field in dataclasses.fields(found)}
        for key in values:
            one_of(f"key of {self.word} {table['kind']!r}:", key, fields)
        for name, field in fields.items():
            if name not in values and _required(field):
                raise InvalidValue(f"{self.word} {table['kind']!r} needs a value for {name!r}")
        types_of = typing.get_type_hints(found)
        made = {
            key: nested[key].build(value, nested)
            if isinstance(value, Mapping) and key in nested
            else _converted(f"{key} of {self.word} {table['kind']!r}", value, types_of[key])
            for key, value in values.items()
        }
        return found(**made)

    def _modules(self) -> Iterator[tuple[str, type[Kind]]]:
        package = importlib.import_module(self.package)
        for info in pkgutil.iter_modules(package.__path__):
            module = importlib.import_module(f"{self.package}.{info.name}")
            for found in self._classes_of(module):
                yield info.name.replace("_", "-"), found

    def _classes_of(self, module: types.ModuleType) -> Iterator[type[Kind]]:
        for _, value in inspect.getmembers(module, inspect.isclass):
            here = value.__module__ == module.__name__
            if here and issubclass(value, self.contract) and not inspect.isabstract(value):
                yield value

    def _from_file(self, name: str) -> type[Kind]:
        path_text, _, class_name = name.partition(":")
        path = Path(path_text)
        if not path.is_file():
            raise InvalidValue(f"{self.word} {name!r}: there is no file {path_text!r}")
        module = _loaded(path)
        if module is None:
            raise InvalidValue(f"{self.word} {name!r}: {path_text!r} is not a Python file")
        found = {value.__name__: value for value in self._classes_of(module)}
        one_of(f"{self.word} in {path_text}:", class_name, found)
        return found[class_name]


def _loaded(path: Path) -> types.ModuleType | None:
    """The module of a file, the same one each time; None where it is not a Python file."""
    name = "submax_file_" + str(path.resolve()).replace(".", "_")
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
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _converted(where: str, value: Any, wanted: Any) -> Any:
    """Whole numbers pass as floats and lists as tuples; everything else must be what is said."""
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if typing.get_origin(wanted) is tuple and isinstance(value, list):
        inner = typing.get_args(wanted)[0]
        return tuple(_converted(where, item, inner) for item in value)
    plain = typing.get_origin(wanted) or wanted
    if not isinstance(value, plain) or (isinstance(value, bool) and plain is not bool):
        raise InvalidValue(f"{where} must be of type {plain.__name__}, not {value!r}")
    return value
