"""Pages on the public classes and functions of each package, made by mkdocstrings."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

import submax
from submax import environments, estimators, evaluation, policies, simulation, strategies
from submax.core.registry import Registry
from submax.integrations import gymnasium, scikit_learn
from submax.simulation import figures

WITH_ALL_METHODS = ("Bandit", "Client", "AsyncClient", "Log", "Comparison")
"""Classes whose inherited methods are listed too, because callers use all of them."""
PACKAGES = {"core", "environments", "live", "policies", "schema", "web"}
PACKAGES |= {"simulation", "strategies"}
"""The packages whose names in ``submax`` are on the pages below."""


class PublicName(NamedTuple):
    """A public name, the place where it is defined, and whether its methods are listed."""

    name: str
    home: str
    methods: bool = True


class PythonPage(NamedTuple):
    """A page: its title, what it says first, and the public names in its sections."""

    title: str
    intro: str
    sections: Mapping[str, list[PublicName]]


def python_pages() -> dict[str, str]:
    """Return the text of every page, by its place in the site."""
    top = _top_names()
    if missing := top.keys() - PACKAGES:
        raise SystemExit(f"python_pages.py has no page for names of: {', '.join(sorted(missing))}")
    pages = {**_deciding_pages(top), **_learning_pages(top), **_other_pages()}
    return {f"reference/python/{name}.md": _text(page) for name, page in pages.items()}


def _deciding_pages(top: Mapping[str, list[PublicName]]) -> dict[str, PythonPage]:
    """Return the pages for those who decide, and for those who write a class of their own."""
    return {
        "bandit": PythonPage(
            "Bandit",
            "`submax.open` opens a bandit with a durable log, and `submax.Bandit` is one in "
            "memory. Both have the methods below.",
            {"": _by_name(top["live"] + top["schema"], first=("open", "Bandit"))},
        ),
        "client": PythonPage(
            "Clients",
            "Clients call a server over HTTP. They have the words of a bandit, and need only "
            "httpx and msgspec. All names are in `submax.client`, which also has the "
            "[errors](../errors.md) of `submax`.",
            {"": [one for one in _exported(submax.client) if not _is_elsewhere(one, top)]},
        ),
        "contracts": PythonPage(
            "Contracts and problems",
            "What a policy, a strategy, an estimator and an environment have to do, and what they "
            "are given: problems, actions, rewards and feedback. All names are in `submax`.",
            {"": _by_name(top["core"])},
        ),
    }


def _learning_pages(top: Mapping[str, list[PublicName]]) -> dict[str, PythonPage]:
    """Return the pages on what decides and learns, and on where it is simulated."""
    return {
        "policies": _folder_page(
            "Policies",
            "`submax.make_policy` makes a policy from its [name](../policies.md) or from a table. "
            "The classes are in `submax.policies`. Their methods are those of "
            "[Policy](contracts.md).",
            policies.POLICIES,
            top["policies"],
        ),
        "strategies": _folder_page(
            "Strategies",
            "A strategy turns the probabilities conditioned on each reward level into the "
            "probabilities by which a policy decides. The classes are in `submax.strategies`.",
            strategies.STRATEGIES,
            top["strategies"],
        ),
        "estimators": _folder_page(
            "Estimators",
            "An estimator learns p(action | context, reward level). The classes are in "
            "`submax.estimators`.",
            estimators.ESTIMATORS,
        ),
        "environments": _folder_page(
            "Environments",
            "An environment is a distribution over hidden worlds in which policies are simulated. "
            "The classes are in `submax` and in `submax.environments`.",
            environments.ENVIRONMENTS,
        ),
        "simulation": _folder_page(
            "Simulation",
            "Simulate a policy in an environment, with delayed rewards.",
            simulation.DELAYS,
            [one for one in top["simulation"] if one.name[7:].islower()],
        ),
    }


def _other_pages() -> dict[str, PythonPage]:
    """Return the pages on packages that export all their names themselves."""
    return {
        "evaluation": PythonPage(
            "Evaluation of logs",
            "Read logs, learn policies from them, and estimate what other policies would have "
            "earned. All names are in `submax.evaluation`.",
            {"": _exported(evaluation)},
        ),
        "plots": PythonPage(
            "Figures", "All names are in `submax.simulation.figures`.", {"": _exported(figures)}
        ),
        "testing": PythonPage(
            "Conformance suites",
            "Each suite checks that a class keeps its contract. All names are in `submax.testing`.",
            {"": _exported(submax.testing)},
        ),
        "bridges": PythonPage(
            "scikit-learn and Gymnasium",
            "`submax.integrations.scikit_learn` needs the extra `data`, and "
            "`submax.integrations.gymnasium` the extra `gymnasium`.",
            {"": [*_exported(scikit_learn), *_exported(gymnasium)]},
        ),
    }


def _top_names() -> dict[str, list[PublicName]]:
    """Return the names in ``submax`` by the package in which each is defined."""
    found: dict[str, list[PublicName]] = defaultdict(list)
    for name in submax.__all__:
        value = getattr(submax, name)
        if hasattr(value, "__qualname__"):
            found[value.__module__.split(".")[1]].append(PublicName(f"submax.{name}", _home(value)))
    return found


def _is_elsewhere(one: PublicName, top: Mapping[str, list[PublicName]]) -> bool:
    """Whether another page has the name; the clients themselves have no other page."""
    others = (name for package, names in top.items() if package != "web" for name in names)
    return one.home in {name.home for name in others}


def _home(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _by_name(names: list[PublicName], first: tuple[str, ...] = ()) -> list[PublicName]:
    order = {f"submax.{name}": place for place, name in enumerate(first)}
    return sorted(names, key=lambda one: (order.get(one.name, len(order)), one.name.lower()))


def _exported(package: Any) -> list[PublicName]:
    names = sorted(package.__all__, key=str.lower)
    return [PublicName(f"{package.__name__}.{one}", _home(getattr(package, one))) for one in names]


def _folder_page(
    title: str, intro: str, folder: Registry[Any], first: list[PublicName] | None = None
) -> PythonPage:
    """Return a page with a section for each folder of classes."""
    classes = sorted(folder.classes(), key=lambda one: (_section(folder, one), one.__name__))
    sections = {
        section: [PublicName(f"{folder.package}.{one.__name__}", _home(one), False) for one in each]
        for section, each in groupby(classes, key=lambda one: _section(folder, one))
    }
    return PythonPage(title, intro, {"": [*(first or []), *sections.pop("", [])], **sections})


def _section(folder: Registry[Any], found: type) -> str:
    """Return the title of a class's section: its folder inside of the package, in words."""
    inside = found.__module__.removeprefix(f"{folder.package}.").split(".")[:-1]
    return " ".join(inside).replace("_", " ").capitalize()


def _text(page: PythonPage) -> str:
    parts = [f"# {page.title}", page.intro]
    for section, names in page.sections.items():
        parts += [f"## {section}"] if section else []
        parts += [_directive(one) for one in names]
    return "\n\n".join(parts) + "\n"


def _directive(public: PublicName) -> str:
    return "\n".join([f"::: {public.home}", "    options:", *_options(public)])


def _options(public: PublicName) -> Iterator[str]:
    short = public.name.rpartition(".")[2]
    yield f"      heading: {public.name}"
    yield f"      toc_label: {short}"
    if not public.methods:
        yield "      members: false"
    if short in WITH_ALL_METHODS:
        yield "      inherited_members: true"
