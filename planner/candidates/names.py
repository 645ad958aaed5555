"""Names in the plain data of a spec or of a file of policies, against the catalog: GPUs, providers, regions of selectors.

What is not of the right type was reported before and is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from planner.catalog import Catalog, UnknownName
from planner.diagnostics import Diagnostic, Span
from planner.source import YamlPath, nearest
from planner.spec.supply import OWNED

SHOWN = 8
_GLOB = "*?["
_KINDS = {"gpu": "GPU", "model": "model", "provider": "provider"}


class SpanOf(Protocol):
    """Where a value, or its key, stands."""

    def __call__(self, path: YamlPath, key: bool = False) -> Span: ...


@dataclass(frozen=True)
class NameChecker:
    """Checks names at their place. `regions` gives those that a selector may name, `who` says whose they are."""

    catalog: Catalog
    span: SpanOf
    regions: Callable[[], Collection[str]]
    who: str

    def gpu(
        self, name: object, path: YamlPath, resolved: dict[str, YamlPath], key: bool = False
    ) -> Iterator[Diagnostic]:
        """Resolve a GPU name into `resolved`, or say why it cannot be."""
        if not isinstance(name, str):
            return
        try:
            resolved[self.catalog.gpu(name).name] = path
        except UnknownName as unknown:
            yield unknown_name(unknown, self.span(path, key))

    def provider(self, name: str, path: YamlPath) -> Iterator[Diagnostic]:
        """Check the name of a provider."""
        try:
            self.catalog.offers(name)
        except UnknownName as unknown:
            yield unknown_name(unknown, self.span(path), "hardware of your own has `provider: owned`")

    def selector(self, selector: Mapping[str, Any], path: YamlPath) -> Iterator[Diagnostic]:
        """Check the names in a selector."""
        for position, name in enumerate(items(selector.get("gpus"))):
            yield from self.gpu(name, (*path, "gpus", position), {})
        for place, name in one_or_several(selector, path, "provider", "providers"):
            if isinstance(name, str) and name != OWNED:
                yield from self.provider(name, place)
        for place, name in one_or_several(selector, path, "region", "regions"):
            yield from self._region(name, place)

    def _region(self, name: object, path: YamlPath) -> Iterator[Diagnostic]:
        if not isinstance(name, str) or any(sign in name for sign in _GLOB):
            return
        known = self.regions()
        if name.casefold() not in {region.casefold() for region in known}:
            close = nearest(name, known)
            yield Diagnostic(
                "catalog/unknown-region",
                f"no provider of {self.who} has a region `{name}`",
                self.span(path),
                label=f"did you mean `{close}`?" if close else "",
            )


def policy_selectors(data: Mapping[str, Any]) -> Iterator[tuple[YamlPath, Mapping[str, Any]]]:
    """Yield the selectors of the policies in the data of a file, each with its path."""
    for index, policy in enumerate(items(data.get("policies"))):
        for rule in ("forbid", "require"):
            yield ("policies", index, rule), mapping(mapping(policy).get(rule))
        share = mapping(mapping(policy).get("max_share"))
        yield ("policies", index, "max_share", "match"), mapping(share.get("match"))


def unknown_name(unknown: UnknownName, span: Span, help: str = "") -> Diagnostic:
    """Turn an unknown name into a diagnostic, with its suggestions."""
    kind = _KINDS.get(unknown.kind, unknown.kind)
    lines = (
        help or f"list them: planner catalog list {'offers' if unknown.kind == 'provider' else unknown.kind + 's'}",
    )
    if unknown.reason:
        message = f"{kind} `{unknown.name}` is not modelled: {unknown.reason}"
        return Diagnostic("catalog/not-modelled", message, span, help=lines)
    choices = [f"`{name}`" for name in unknown.suggestions[:SHOWN]]
    if unknown.ambiguous:
        message = f"{kind} `{unknown.name}` could be one of {len(unknown.suggestions)}"
        return Diagnostic(f"catalog/ambiguous-{unknown.kind}", message, span, label=f"write {' or '.join(choices)}")
    label = f"did you mean {choices[0]}?" if choices else ""
    message = f"no {kind} `{unknown.name}` in the catalog"
    return Diagnostic(f"catalog/unknown-{unknown.kind}", message, span, label=label, help=lines)


def mapping(value: object) -> Mapping[str, Any]:
    """Return a value that is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """Return a value that is a list, else an empty one."""
    return value if isinstance(value, list) else []


def one_or_several(holder: Mapping[str, Any], path: YamlPath, one: str, several: str) -> list[tuple[YamlPath, Any]]:
    """Return the names under a key for one and a key for several of them, each with its path."""
    return [((*path, one), holder.get(one))] + [
        ((*path, several, position), name) for position, name in enumerate(items(holder.get(several)))
    ]
