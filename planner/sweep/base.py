"""What scenarios are variants of: where a key leads in the spec or the catalog, and what both are with other values there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from planner.candidates.references import open_catalog
from planner.candidates.supply import build_supply
from planner.catalog import Catalog, CatalogChanges
from planner.catalog.loading import FileValues, read_document
from planner.diagnostics import DiagnosticError
from planner.plan.io import sha256
from planner.source import FilePath, YamlPath, nearest
from planner.source.edit import path_of, read_value
from planner.spec import LoadedSpec
from planner.spec.keys import key_path, offer_labels
from planner.spec.variants import with_texts
from planner.sweep.scenario import Values
from planner.units import Price, UnitError, parse_price

PRICE, CATALOG = "price.", "catalog."
OF_THE_SPEC = ("path", "digest")
"""What `catalog` has in the spec; all else below it is of the files of the catalog."""
NAMED_BY_USERS = ("models", "workloads")
"""Sections whose keys are names: a new one is a slip, not a key that has its default."""
OF_MODELS, CONFIG = ("models", "defaults"), "config"
CALIBRATION = "calibration/"
ENDING = ".yaml"
_MOST_CATALOGS = 8


class UnknownKeyError(ValueError):
    """A key that leads nowhere; `meant` is what may have been meant, if anything is near."""

    def __init__(self, message: str, meant: str | None = None) -> None:
        super().__init__(message)
        self.meant = meant


@dataclass(frozen=True)
class InSpec:
    """A place in the text of the spec."""

    path: YamlPath


@dataclass(frozen=True)
class InCatalog:
    """A place in a file of the catalog, which has its path inside the catalog."""

    file: str
    path: YamlPath


@dataclass(frozen=True)
class OfOffer:
    """The price of the nodes of an offer, by its name in plans."""

    name: str


Place = InSpec | InCatalog | OfOffer


def holds(place: Place, part: Place) -> bool:
    """Tell whether a place is a section that another one is a part of."""
    if isinstance(place, OfOffer) or isinstance(part, OfOffer) or _file_of(place) != _file_of(part):
        return False
    return part.path[: len(place.path)] == place.path != part.path


def _file_of(place: InSpec | InCatalog) -> str:
    return place.file if isinstance(place, InCatalog) else ""


class Base:
    """A spec without mistakes, and its catalog. `folder` is the catalog that is taken in place of that of the spec."""

    def __init__(self, loaded: LoadedSpec, catalog: Catalog, folder: FilePath | None = None) -> None:
        self.loaded, self.catalog, self._folder = loaded, catalog, folder
        self._changed: dict[str, Catalog] = {}

    def place(self, key: str) -> Place:
        """Return where a key leads. Raises `UnknownKeyError`."""
        if key.startswith(PRICE):
            return self._offer(key.removeprefix(PRICE))
        if key.startswith(CATALOG) and key.removeprefix(CATALOG) not in OF_THE_SPEC:
            return self._file(key.removeprefix(CATALOG))
        return self._in_spec(key)

    def variant(self, values: Values) -> tuple[LoadedSpec, Catalog]:
        """Return the spec and the catalog with other values. Raises `DiagnosticError`, `UnknownKeyError` or `UnitError`."""
        texts: list[tuple[YamlPath, str]] = []
        files: dict[str, FileValues] = {}
        prices: dict[str, Price] = {}
        for key, text in values:
            place = self.place(key)
            if isinstance(place, InSpec):
                texts.append((place.path, text))
            elif isinstance(place, InCatalog):
                files[place.file] = (*files.get(place.file, ()), (place.path, read_value(text)))
            else:
                prices[place.name] = parse_price(read_value(text))
        loaded = with_texts(self.loaded, texts)
        catalog = self.catalog
        if any(self.reads_files(*value) for value in values):
            catalog = open_catalog(loaded, self._folder)
        return loaded, self._with(catalog, CatalogChanges(files, prices))

    def reads_files(self, key: str, text: str) -> bool:
        """Tell whether a value names another catalog, or the config of a model."""
        place = self.place(key)
        if not isinstance(place, InSpec):
            return False
        return place.path[0] == "catalog" or (place.path[0] in OF_MODELS and CONFIG in f"{place.path[-1]} {text}")

    def unit(self, key: str) -> str:
        """Return the unit of the value at a key of the spec, empty where there is none."""
        from planner.sweep.distributions import unit_of

        try:
            place = self.place(key)
        except UnknownKeyError:
            return ""
        document = self.loaded.document
        text = document.text_at(place.path) if isinstance(place, InSpec) and document is not None else None
        return unit_of(text or "")

    def _with(self, catalog: Catalog, changes: CatalogChanges) -> Catalog:
        """Return a catalog with changes; the latest ones are kept, with what was read of them."""
        if not changes.text:
            return catalog
        key = f"{catalog.root}\n{changes.text}"
        if key not in self._changed:
            if len(self._changed) == _MOST_CATALOGS:
                del self._changed[next(iter(self._changed))]
            self._changed[key] = catalog.changed(changes)
        return self._changed[key]

    @cached_property
    def _offers(self) -> dict[str, str]:
        assert self.loaded.spec is not None
        return {o.name.casefold(): o.name for o in build_supply(self.loaded.spec, self.catalog).offers}

    @cached_property
    def _files(self) -> dict[str, str]:
        """The files of the catalog's folders, by what keys call them."""
        names = (name for name in self.catalog.files() if "/" in name)
        return {name.removesuffix(ENDING).replace("/", ".", 1): name for name in names}

    def _offer(self, name: str) -> OfOffer:
        known = self._offers.get(name.casefold())
        if known is None:
            raise _unknown(name, "no offer of the spec with a price", self._offers.values())
        return OfOffer(known)

    def _file(self, key: str) -> InCatalog:
        path = path_of(dict.fromkeys(self._files), key)
        file = self._files.get(str(path[0]))
        if file is None:
            folder = key.partition(".")[0]
            alike = [name for name in self._files if name.partition(".")[0] == folder]
            name = ".".join(key.split(".")[:2])
            raise _unknown(name, "no file of the catalog", alike or {n.partition(".")[0] for n in self._files})
        rest = key[len(str(path[0])) + 1 :]
        if not rest:
            raise UnknownKeyError(f"`{key}` is a whole file of the catalog; add the key in it")
        document = read_document(self.catalog.files()[file])
        path = _checked(document.data, path_of(document.data, rest))
        if file.startswith(CALIBRATION) and not document.has(path):  # no record says which keys there may be
            raise UnknownKeyError(f"`{rest}` is no constant of {file}")
        return InCatalog(file, path)

    def _in_spec(self, key: str) -> InSpec:
        path = key_path(self.loaded, key)
        data = self.loaded.document.data if self.loaded.document is not None else {}
        if path[0] in NAMED_BY_USERS:
            own = data.get(path[0], {})
            if len(path) < 2 or path[1] not in own:
                raise _unknown(str(path[1]) if len(path) > 1 else key, f"not one of the {path[0]}", own)
        return InSpec(_checked(data, path, tuple(offer_labels(self.loaded))))


def _checked(data: object, path: YamlPath, labels: tuple[str, ...] = ()) -> YamlPath:
    """Return a path that leads through the lists of some data by their numbers. Raises `UnknownKeyError`."""
    node = data
    for part in path:
        if isinstance(node, list):
            if not isinstance(part, int):
                offered = labels if path[:2] == ("supply", "offers") else [str(i) for i in range(len(node))]
                raise _unknown(str(part), "not in the list", offered)
            node = node[part]
        else:
            node = node.get(part) if isinstance(node, dict) else None
    return path


def _unknown(name: str, what: str, known: Iterable[str]) -> UnknownKeyError:
    names = sorted(known)
    close = nearest(name, names)
    listed = "" if close or len(names) > 12 else f"; there are {', '.join(names)}"
    return UnknownKeyError(f"`{name}` is {what}{listed}", close)


def digest_of(catalog: Catalog) -> str:
    """Return the digest of a catalog together with the models that a spec brings along."""
    added = "".join(f"{entry.model_dump_json()}\n" for entry in catalog.added.values())
    return sha256(f"{catalog.digest()}\n{added}") if added else catalog.digest()


def reason_of(error: DiagnosticError | UnknownKeyError | UnitError) -> str:
    """Return what is wrong with a variant, in one line."""
    if isinstance(error, DiagnosticError):
        return next((d.message for d in error.diagnostics if d.severity == "error"), str(error))
    return f"{error.message}; {error.hint}" if isinstance(error, UnitError) else str(error)
