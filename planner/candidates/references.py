"""Names of a spec against the catalog: models, GPUs, providers, regions, instances. Loads no solver and no numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.candidates.configs import config_models
from planner.candidates.names import SHOWN, NameChecker, items, mapping, one_or_several, policy_selectors, unknown_name
from planner.catalog import Catalog, UnknownName, find_catalog
from planner.diagnostics import Diagnostic, DiagnosticError, Span, sort_key
from planner.source import FilePath, YamlPath, nearest
from planner.spec import LoadedPolicies, LoadedSpec
from planner.spec.supply import OWNED

_SECTIONS_WITH_SELECTORS = ("models", "workloads")


_Opener = Callable[[FilePath | None], Catalog]


class OpenCatalogs:
    """Opens each catalog once, whichever way specs spell its path, so that many specs share what is read of it."""

    def __init__(self) -> None:
        self._by_place: dict[FilePath | None, Catalog] = {}

    def __call__(self, path: FilePath | None) -> Catalog:
        """Return the catalog at `path`, or the shipped one. Raises `DiagnosticError`."""
        place = path.resolve() if path is not None else None
        if place not in self._by_place:
            self._by_place[place] = Catalog.open(path)
        return self._by_place[place]


def open_catalog(loaded: LoadedSpec, folder: FilePath | None = None, opener: _Opener = Catalog.open) -> Catalog:
    """Open the catalog for a spec: `folder`, else what the spec names, else the nearest one upward, else the shipped one.

    Models that the spec brings along as a config are known too, except those that cannot be used. `opener` is an
    `OpenCatalogs` where many specs are read. Raises DiagnosticError, at its place in the spec where that names the
    catalog.
    """
    return _catalog_files(loaded, folder, opener).including(config_models(loaded)[0])


def _catalog_files(loaded: LoadedSpec, folder: FilePath | None, opener: _Opener) -> Catalog:
    if folder is not None:
        return opener(folder)
    home = loaded.home
    reference = mapping(_data(loaded).get("catalog"))
    named = reference.get("path")
    if not isinstance(named, str):
        return _with_digest(opener(find_catalog(home)), reference, loaded)
    try:
        return _with_digest(opener(home / named), reference, loaded)
    except DiagnosticError as error:
        span = loaded.span(("catalog", "path"))
        if error.diagnostics[0].code != "catalog/not-found":
            raise DiagnosticError(replace(d, span=d.span or span) for d in error.diagnostics) from error
        raise DiagnosticError(
            [Diagnostic("catalog/not-found", f"`{named}` is no catalog", span, label="it holds no catalog.yaml")]
        ) from error


def check_references(loaded: LoadedSpec, catalog: Catalog) -> tuple[Diagnostic, ...]:
    """Return what the spec names and the catalog does not have or does not sell, sorted by place.

    Works on the text, so that it finds everything also when other parts of the spec are wrong.
    """
    checker = _Checker(loaded, catalog)
    try:
        found = [
            *config_models(loaded)[1],
            *checker.models(),
            *checker.offers(),
            *checker.limits(),
            *checker.selectors(),
            *checker.deployed(),
        ]
    except DiagnosticError as error:
        return error.diagnostics
    unique = {(d.code, d.span, d.message): d for d in found}
    return tuple(sorted(unique.values(), key=sort_key))


def check_policy_references(policies: LoadedPolicies, catalog: Catalog) -> tuple[Diagnostic, ...]:
    """Return what a file of policies names and the catalog does not have, sorted by place.

    It is for many specs, so that every region of the catalog will do.
    """

    def regions() -> set[str]:
        return {region for provider in catalog.providers() for region in catalog.regions(provider)}

    names = NameChecker(catalog, policies.span, regions, "the catalog")
    selectors = policy_selectors(policies.document.data if policies.document is not None else {})
    found = {(d.code, d.span, d.message): d for path, each in selectors for d in names.selector(each, path)}
    return tuple(sorted(found.values(), key=sort_key))


class _Checker:
    """Walks the plain data of a spec; what is not of the right type was reported before and is skipped."""

    def __init__(self, loaded: LoadedSpec, catalog: Catalog) -> None:
        self._loaded = loaded
        self._catalog = catalog
        self._data = _data(loaded)
        self._names = NameChecker(catalog, loaded.span, self._offered_regions, "this spec")

    def models(self) -> Iterator[Diagnostic]:
        """Check `use` and `max_model_len`."""
        defaults = mapping(self._data.get("defaults"))
        for name, own in mapping(self._data.get("models")).items():
            model = {**defaults, **mapping(own)}
            wanted, path = model.get("config", model.get("use")), ("models", name)
            if not isinstance(wanted, str):
                continue
            try:
                longest = self._catalog.architecture(wanted).max_position
            except UnknownName as unknown:
                if "config" not in model:
                    yield unknown_name(unknown, self._span((*path, "use")))
                continue
            limit = self._loaded.spec.models[name].max_model_len if self._loaded.spec else None
            if limit is not None and limit > longest:
                span = self._span((*path, "max_model_len"))
                yield Diagnostic(
                    "spec/out-of-range",
                    f"max_model_len {limit:,} is longer than the {longest:,} tokens of `{wanted}`",
                    span,
                    label=f"write {longest} or less",
                )

    def offers(self) -> Iterator[Diagnostic]:
        """Check providers, regions, instances and GPUs of the offers, and that they are sold together."""
        for index, offer in enumerate(items(mapping(self._data.get("supply")).get("offers"))):
            path: YamlPath = ("supply", "offers", index)
            gpus: dict[str, YamlPath] = {}
            for position, name in enumerate(items(mapping(offer).get("gpus"))):
                yield from self._names.gpu(name, (*path, "gpus", position), gpus)
            provider = mapping(offer).get("provider")
            if isinstance(provider, str) and provider != OWNED:
                yield from self._sold(provider, mapping(offer), path, gpus)

    def limits(self) -> Iterator[Diagnostic]:
        """Check the GPU names of the limits."""
        limits = mapping(mapping(self._data.get("supply")).get("limits"))
        for name in mapping(limits.get("gpus")):
            yield from self._names.gpu(name, ("supply", "limits", "gpus", name), {}, key=True)

    def selectors(self) -> Iterator[Diagnostic]:
        """Check the names in allow, deny, prefer, forbid and the rules of the limits."""
        for path, selector in self._all_selectors():
            yield from self._names.selector(selector, path)

    def deployed(self) -> Iterator[Diagnostic]:
        """Check the GPU names of what is deployed."""
        for index, entry in enumerate(items(self._data.get("deployed"))):
            if "gpu" in mapping(entry):
                yield from self._names.gpu(entry["gpu"], ("deployed", index, "gpu"), {})

    def _all_selectors(self) -> Iterator[tuple[YamlPath, Mapping[str, Any]]]:
        holders: list[tuple[YamlPath, object]] = [(("defaults",), self._data.get("defaults"))]
        for section in _SECTIONS_WITH_SELECTORS:
            holders += [((section, name), item) for name, item in mapping(self._data.get(section)).items()]
        for path, holder in holders:
            for key in ("allow", "deny", "prefer"):
                yield (*path, key), mapping(mapping(holder).get(key))
        yield from policy_selectors(self._data)
        limits = mapping(mapping(self._data.get("supply")).get("limits"))
        for index, rule in enumerate(items(limits.get("rules"))):
            yield ("supply", "limits", "rules", index, "match"), mapping(mapping(rule).get("match"))

    def _sold(
        self, provider: str, offer: Mapping[str, Any], path: YamlPath, gpus: Mapping[str, YamlPath]
    ) -> Iterator[Diagnostic]:
        unknown = list(self._names.provider(provider, (*path, "provider")))
        if unknown:
            yield from unknown
            return
        listed = self._catalog.offers(provider)
        named = one_or_several(offer, path, "region", "regions")
        regions: set[str] = set()
        for place, name in named:
            if isinstance(name, str):
                problem = self._missing_from(name, {o.region for o in listed}, "region", provider, place)
                yield from problem
                regions |= set() if problem else {name.casefold()}
        for position, name in enumerate(items(offer.get("instances"))):
            if isinstance(name, str):
                place = (*path, "instances", position)
                yield from self._missing_from(name, {o.instance for o in listed}, "instance", provider, place)
        for gpu, place in gpus.items():
            places = {o.region.casefold() for o in listed if o.gpu == gpu}
            if not places or (regions and not places & regions):
                yield self._not_sold(gpu, provider, sorted({o.region for o in listed if o.gpu == gpu}), place)

    def _missing_from(self, name: str, known: set[str], what: str, provider: str, path: YamlPath) -> list[Diagnostic]:
        if name.casefold() in {choice.casefold() for choice in known}:
            return []
        close = nearest(name, known)
        return [
            Diagnostic(
                f"catalog/unknown-{what}",
                f"{provider} has no {what} `{name}` with a priced GPU in the catalog",
                self._span(path),
                label=f"did you mean `{close}`?" if close else "",
                help=(f"{what}s here: {_some(sorted(known))}",),
            )
        ]

    def _not_sold(self, gpu: str, provider: str, regions: list[str], path: YamlPath) -> Diagnostic:
        where = f"sold in {_some(regions)}" if regions else "remove it, or choose another provider"
        there = "in this region" if regions else "in the catalog"
        return Diagnostic("catalog/not-sold", f"{provider} has no priced {gpu} {there}", self._span(path), label=where)

    def _offered_regions(self) -> set[str]:
        regions: set[str] = set()
        for offer in map(mapping, items(mapping(self._data.get("supply")).get("offers"))):
            provider = offer.get("provider")
            regions |= {name for name in (offer.get("region"), offer.get("name")) if isinstance(name, str)}
            if isinstance(provider, str) and provider.casefold() in self._catalog.providers():
                regions |= {listed.region for listed in self._catalog.offers(provider)}
        return regions

    def _span(self, path: YamlPath, key: bool = False) -> Span:
        return self._loaded.span(path, key)


def _with_digest(catalog: Catalog, reference: Mapping[str, Any], loaded: LoadedSpec) -> Catalog:
    wanted = reference.get("digest")
    if not isinstance(wanted, str) or wanted == catalog.digest():
        return catalog
    raise DiagnosticError(
        [
            Diagnostic(
                "catalog/digest",
                "the catalog is not the one that this spec is written against",
                loaded.span(("catalog", "digest")),
                label="write the new digest when the change is meant",
                help=(f"digest here: {catalog.digest()}",),
            )
        ]
    )


def _data(loaded: LoadedSpec) -> Mapping[str, Any]:
    return loaded.document.data if loaded.document is not None else {}


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
