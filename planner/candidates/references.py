"""Names of a spec against the catalog: models, GPUs, providers, regions, instances. Loads no solver and no numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from planner.candidates.configs import config_models
from planner.catalog import Catalog, UnknownName, find_catalog
from planner.diagnostics import Diagnostic, DiagnosticError, Span, sort_key
from planner.source import FilePath, YamlPath, nearest
from planner.spec import LoadedSpec
from planner.spec.supply import OWNED

_GLOB = "*?["
_SECTIONS_WITH_SELECTORS = ("models", "workloads")
_KINDS = {"gpu": "GPU", "model": "model", "provider": "provider"}
_SHOWN = 8


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
    reference = _mapping(_data(loaded).get("catalog"))
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


class _Checker:
    """Walks the plain data of a spec; what is not of the right type was reported before and is skipped."""

    def __init__(self, loaded: LoadedSpec, catalog: Catalog) -> None:
        self._loaded = loaded
        self._catalog = catalog
        self._data = _data(loaded)

    def models(self) -> Iterator[Diagnostic]:
        """Check `use` and `max_model_len`."""
        defaults = _mapping(self._data.get("defaults"))
        for name, own in _mapping(self._data.get("models")).items():
            model = {**defaults, **_mapping(own)}
            wanted, path = model.get("config", model.get("use")), ("models", name)
            if not isinstance(wanted, str):
                continue
            try:
                longest = self._catalog.architecture(wanted).max_position
            except UnknownName as unknown:
                if "config" not in model:
                    yield _unknown(unknown, self._span((*path, "use")))
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
        for index, offer in enumerate(_items(_mapping(self._data.get("supply")).get("offers"))):
            path: YamlPath = ("supply", "offers", index)
            gpus: dict[str, YamlPath] = {}
            for position, name in enumerate(_items(_mapping(offer).get("gpus"))):
                yield from self._gpu(name, (*path, "gpus", position), gpus)
            provider = _mapping(offer).get("provider")
            if isinstance(provider, str) and provider != OWNED:
                yield from self._sold(provider, _mapping(offer), path, gpus)

    def limits(self) -> Iterator[Diagnostic]:
        """Check the GPU names of the limits."""
        limits = _mapping(_mapping(self._data.get("supply")).get("limits"))
        for name in _mapping(limits.get("gpus")):
            yield from self._gpu(name, ("supply", "limits", "gpus", name), {}, key=True)

    def selectors(self) -> Iterator[Diagnostic]:
        """Check the names in allow, deny, prefer, forbid and the rules of the limits."""
        for path, selector in self._all_selectors():
            for position, name in enumerate(_items(selector.get("gpus"))):
                yield from self._gpu(name, (*path, "gpus", position), {})
            for place, name in _one_or_several(selector, path, "provider", "providers"):
                if isinstance(name, str) and name != OWNED:
                    yield from self._provider(name, place)
            for place, name in _one_or_several(selector, path, "region", "regions"):
                yield from self._selected_region(name, place)

    def deployed(self) -> Iterator[Diagnostic]:
        """Check the GPU names of what is deployed."""
        for index, entry in enumerate(_items(self._data.get("deployed"))):
            if "gpu" in _mapping(entry):
                yield from self._gpu(entry["gpu"], ("deployed", index, "gpu"), {})

    def _all_selectors(self) -> Iterator[tuple[YamlPath, Mapping[str, Any]]]:
        holders: list[tuple[YamlPath, object]] = [(("defaults",), self._data.get("defaults"))]
        for section in _SECTIONS_WITH_SELECTORS:
            holders += [((section, name), item) for name, item in _mapping(self._data.get(section)).items()]
        for path, holder in holders:
            for key in ("allow", "deny", "prefer"):
                yield (*path, key), _mapping(_mapping(holder).get(key))
        for index, policy in enumerate(_items(self._data.get("policies"))):
            yield ("policies", index, "forbid"), _mapping(_mapping(policy).get("forbid"))
        limits = _mapping(_mapping(self._data.get("supply")).get("limits"))
        for index, rule in enumerate(_items(limits.get("rules"))):
            yield ("supply", "limits", "rules", index, "match"), _mapping(_mapping(rule).get("match"))

    def _gpu(
        self, name: object, path: YamlPath, resolved: dict[str, YamlPath], key: bool = False
    ) -> Iterator[Diagnostic]:
        """Resolve a GPU name into `resolved`, or say why it cannot be."""
        if not isinstance(name, str):
            return
        try:
            resolved[self._catalog.gpu(name).name] = path
        except UnknownName as unknown:
            yield _unknown(unknown, self._span(path, key))

    def _provider(self, name: str, path: YamlPath) -> Iterator[Diagnostic]:
        try:
            self._catalog.offers(name)
        except UnknownName as unknown:
            yield _unknown(unknown, self._span(path), "hardware of your own has `provider: owned`")

    def _sold(
        self, provider: str, offer: Mapping[str, Any], path: YamlPath, gpus: Mapping[str, YamlPath]
    ) -> Iterator[Diagnostic]:
        unknown = list(self._provider(provider, (*path, "provider")))
        if unknown:
            yield from unknown
            return
        listed = self._catalog.offers(provider)
        named = _one_or_several(offer, path, "region", "regions")
        regions: set[str] = set()
        for place, name in named:
            if isinstance(name, str):
                problem = self._missing_from(name, {o.region for o in listed}, "region", provider, place)
                yield from problem
                regions |= set() if problem else {name.casefold()}
        for position, name in enumerate(_items(offer.get("instances"))):
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

    def _selected_region(self, name: object, path: YamlPath) -> Iterator[Diagnostic]:
        if not isinstance(name, str) or any(sign in name for sign in _GLOB):
            return
        known = self._offered_regions()
        if name.casefold() not in {region.casefold() for region in known}:
            close = nearest(name, known)
            yield Diagnostic(
                "catalog/unknown-region",
                f"no provider of this spec has a region `{name}`",
                self._span(path),
                label=f"did you mean `{close}`?" if close else "",
            )

    def _offered_regions(self) -> set[str]:
        regions: set[str] = set()
        for offer in map(_mapping, _items(_mapping(self._data.get("supply")).get("offers"))):
            provider = offer.get("provider")
            regions |= {name for name in (offer.get("region"), offer.get("name")) if isinstance(name, str)}
            if isinstance(provider, str) and provider.casefold() in self._catalog.providers():
                regions |= {listed.region for listed in self._catalog.offers(provider)}
        return regions

    def _span(self, path: YamlPath, key: bool = False) -> Span:
        return self._loaded.span(path, key)


def _unknown(unknown: UnknownName, span: Span, help: str = "") -> Diagnostic:
    """Turn an unknown name into a diagnostic, with its suggestions."""
    kind = _KINDS.get(unknown.kind, unknown.kind)
    lines = (
        help or f"list them: planner catalog list {'offers' if unknown.kind == 'provider' else unknown.kind + 's'}",
    )
    if unknown.reason:
        message = f"{kind} `{unknown.name}` is not modelled: {unknown.reason}"
        return Diagnostic("catalog/not-modelled", message, span, help=lines)
    choices = [f"`{name}`" for name in unknown.suggestions[:_SHOWN]]
    if unknown.ambiguous:
        message = f"{kind} `{unknown.name}` could be one of {len(unknown.suggestions)}"
        return Diagnostic(f"catalog/ambiguous-{unknown.kind}", message, span, label=f"write {' or '.join(choices)}")
    label = f"did you mean {choices[0]}?" if choices else ""
    message = f"no {kind} `{unknown.name}` in the catalog"
    return Diagnostic(f"catalog/unknown-{unknown.kind}", message, span, label=label, help=lines)


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


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _one_or_several(holder: Mapping[str, Any], path: YamlPath, one: str, several: str) -> list[tuple[YamlPath, Any]]:
    """Return the names under a key for one and a key for several of them, each with its path."""
    return [((*path, one), holder.get(one))] + [
        ((*path, several, position), name) for position, name in enumerate(_items(holder.get(several)))
    ]


def _some(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
