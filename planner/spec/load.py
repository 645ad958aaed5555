"""Read a spec: text in; a frozen FleetSpec, or every mistake with its place, out. Never raises on any text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from planner.diagnostics import Diagnostic, Span, has_errors, sort_key
from planner.source import Document, FilePath, YamlPath, parse
from planner.spec.checks import check_names, check_plausibility
from planner.spec.describe import Places, describe
from planner.spec.fleet import FleetSpec
from planner.spec.gate import check_gate
from planner.spec.section import Section

Root = TypeVar("Root", bound=Section)


@dataclass(frozen=True)
class LoadedSpec:
    """A spec that was read: the model when it is usable, and what was found, sorted by place.

    `file` is where it lies, None where that is at `path` on disk.
    """

    path: str
    spec: FleetSpec | None
    diagnostics: tuple[Diagnostic, ...]
    document: Document | None
    file: FilePath | None = None

    @property
    def home(self) -> FilePath:
        """The folder that the paths in the spec start from."""
        return (Path(self.path) if self.file is None else self.file).parent

    def span(self, path: YamlPath, key: bool = False) -> Span:
        """Return the place of a value of the merged spec (under `defaults` when the model inherits it), or its key."""
        if self.document is None:
            return Span(self.path, 1, 1, 2)
        return Places(self.document).span(path, key)


def load_spec(text: str, path: str, file: FilePath | None = None) -> LoadedSpec:
    """Read a spec. `path` names the file in messages, `file` is where it lies if that is elsewhere; nothing is opened."""
    document, diagnostics = parse(text, path)
    if document is None:
        return LoadedSpec(path, None, tidy(diagnostics), None, file)
    gate = check_gate(document)
    if gate:
        return LoadedSpec(path, None, tidy([*diagnostics, *gate]), document, file)
    spec, found = _validate(document)
    diagnostics.extend(found)
    if has_errors(diagnostics):
        spec = None
    return LoadedSpec(path, spec, tidy(diagnostics), document, file)


def _validate(document: Document) -> tuple[FleetSpec | None, list[Diagnostic]]:
    data, diagnostics = values_of(document)
    merged = _merge_defaults(data)
    diagnostics.extend(check_names(merged, document))
    spec = section_of(FleetSpec, merged, document, diagnostics)
    if spec is not None and not has_errors(diagnostics):
        diagnostics.extend(check_plausibility(spec, Places(document).span))
    return spec, diagnostics


def values_of(document: Document) -> tuple[dict[str, Any], list[Diagnostic]]:
    """Return the data of a document without keys that have no value, and what is wrong with those."""
    data, empty = _without_nulls(document.data, ())
    return data, [_no_value(document, path) for path in empty]


def section_of(
    root: type[Root], data: Mapping[str, Any], document: Document, diagnostics: list[Diagnostic]
) -> Root | None:
    """Return the section that the data of a document is; None, with what is wrong added to `diagnostics`, if it is none."""
    try:
        return root.model_validate(data)
    except ValidationError as error:
        diagnostics.extend(describe(error, root, Places(document)))
        return None


def _without_nulls(value: Any, path: YamlPath) -> tuple[Any, list[YamlPath]]:
    """Return a copy without keys that have no value, and the paths of those keys. `x-` keys are left alone."""
    empty: list[YamlPath] = []
    if isinstance(value, dict):
        copy = {}
        for key, item in value.items():
            if item is None and not key.startswith("x-"):
                empty.append((*path, key))
            else:
                copy[key], below = _without_nulls(item, (*path, key)) if not key.startswith("x-") else (item, [])
                empty.extend(below)
        return copy, empty
    if isinstance(value, list):
        parts = [_without_nulls(item, (*path, index)) for index, item in enumerate(value)]
        return [part for part, _ in parts], [found for _, below in parts for found in below]
    return value, empty


def _no_value(document: Document, path: YamlPath) -> Diagnostic:
    return Diagnostic(
        "spec/no-value",
        f"`{path[-1]}` has no value",
        document.span(path, key=True),
        label="give it one, or remove the key",
    )


def _merge_defaults(data: dict[str, Any]) -> dict[str, Any]:
    defaults, models = data.get("defaults"), data.get("models")
    if not isinstance(defaults, dict) or not isinstance(models, dict):
        return data
    return data | {"models": {name: _deep_merge(defaults, model) for name, model in models.items()}}


def _deep_merge(below: Any, above: Any) -> Any:
    """Return `above` completed by `below`: mappings key by key, everything else replaced."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    merged = dict(below)
    for key, value in above.items():
        merged[key] = _deep_merge(below[key], value) if key in below else value
    return merged


def tidy(diagnostics: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sort by place and say everything once."""
    unique = {(d.code, d.span, d.message): d for d in reversed(diagnostics)}
    return tuple(sorted(unique.values(), key=sort_key))
