"""Turn what pydantic found into diagnostics that speak of the YAML, its keys and its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from planner.diagnostics import Diagnostic, Span
from planner.source import Document, YamlPath, format_path, nearest
from planner.spec.readers import KNOWN_WORDS
from planner.spec.refuse import MISTAKE, quoted
from planner.spec.section import Section

_KEY = "[key]"
_MOST_CHOICES = 500


class Places:
    """Paths of the merged spec and where each comes from: the model itself, or `defaults`."""

    def __init__(self, document: Document) -> None:
        self.document = document

    def origin(self, path: YamlPath) -> YamlPath:
        """Return the path at which a value is written: what a model lacks stands under `defaults`."""
        document = self.document
        if len(path) > 2 and path[0] == "models" and not document.has(path):
            inherited: YamlPath = ("defaults", *path[2:])
            if len(document.trim(inherited)) > max(1, len(document.trim(path)) - 1):
                return inherited
        return path

    def span(self, path: YamlPath, key: bool = False) -> Span:
        """Return the place of a value of the merged spec, or of its key."""
        return self.document.span(self.origin(path), key)


def describe(error: ValidationError, root: type[Section], places: Places) -> Iterator[Diagnostic]:
    """Yield one diagnostic per mistake that pydantic found in the merged spec."""
    for details in error.errors(include_url=False):
        raw = tuple(details["loc"])
        is_key = raw[-1:] == (_KEY,)
        path = places.origin(raw[:-1] if is_key else raw)
        if details["type"] == "missing" and places.document.has(path):
            continue  # the key is there without a value, which is said already
        yield _DESCRIBERS.get(details["type"], _other)(_Finding(details, path, is_key, root, places.document))


@dataclass(frozen=True, slots=True)
class _Finding:
    """One error of pydantic with the place it is about, in the grammar and in the document."""

    details: ErrorDetails
    path: YamlPath
    is_key: bool
    root: type[Section]
    document: Document

    @property
    def input(self) -> object:
        """The value that was refused."""
        return self.details["input"]

    def name_of(self, path: YamlPath) -> str:
        """Name a mapping of the document for a message."""
        return _name(path) if path else self.root.TITLE

    def section(self) -> type[Section] | None:
        """Return the class of the mapping that holds the path."""
        found: Any = self.root
        for segment in self.path[:-1]:
            found = _step(found, segment)
        return found if isinstance(found, type) and issubclass(found, Section) else None


_Describer = Callable[[_Finding], Diagnostic]


def _name(path: YamlPath) -> str:
    """Name the value at a path for a message: by its key, or as the spec."""
    named = next((index for index in reversed(range(len(path))) if isinstance(path[index], str)), None)
    return "the spec" if named is None else f"`{format_path(path[named:])}`"


def unknown_key(key: str, parent: YamlPath, legal: tuple[str, ...], name: str, document: Document) -> Diagnostic:
    """Return the diagnostic of a key that is not in the grammar, with the nearest legal spelling."""
    close = nearest(key, legal) if len(legal) <= _MOST_CHOICES else None
    return Diagnostic(
        "spec/unknown-key",
        f"{quoted(key)} is not a key of {name}",
        document.span((*parent, key), key=True),
        label=f"did you mean `{close}`?" if close else "",
        help=(f"keys here: {', '.join(legal)}",),
        related=((document.span(parent, key=True), ""),) if parent else (),
    )


def _unknown_key(finding: _Finding) -> Diagnostic:
    parent, key = finding.path[:-1], str(finding.path[-1])
    section = finding.section()
    legal = section.legal_keys() if section else ()
    found = unknown_key(key, parent, legal, finding.name_of(parent), finding.document)
    advice = section.FOREIGN_KEYS.get(key) if section else None
    return found if advice is None else replace(found, label=advice(finding.input))


def _missing(finding: _Finding) -> Diagnostic:
    parent = finding.document.trim(finding.path[:-1])
    return Diagnostic(
        "spec/missing-key",
        f"{finding.name_of(parent)} lacks `{finding.path[-1]}`",
        finding.document.span(parent, key=True),
        label=f"add `{finding.path[-1]}`",
    )


def _own(finding: _Finding) -> Diagnostic:
    context: Mapping[str, Any] = finding.details.get("ctx", {})
    document, path = finding.document, finding.path
    if context["at"]:
        path = (*path, int(context["at"]) if context["at"].isdigit() else context["at"])
    here = document.trim(path)
    label, help = context["label"], context["help"]
    if context["code"] == "spec/unquoted-number" and (text := document.text_at(here)) is not None:
        label = f'put it in quotes: "{text}"'
    span = _own_span(context, here, finding)
    if finding.is_key and context["code"] == "spec/unknown-value":
        return replace(_unknown_word(finding), label=label)
    return Diagnostic(context["code"], context["message"], span, label=label, help=(help,) if help else ())


def _unknown_word(finding: _Finding) -> Diagnostic:
    """Describe a key of a mapping whose keys are a closed list of words, such as `slo`."""
    words = finding.details.get("ctx", {})["help"].removeprefix(KNOWN_WORDS)
    parent, key = finding.path[:-1], str(finding.path[-1])
    return unknown_key(key, parent, tuple(words.split(", ")), _name(parent), finding.document)


def _own_span(context: Mapping[str, Any], here: YamlPath, finding: _Finding) -> Span:
    about_key = finding.is_key or context["about_key"]
    if context["end"] and not about_key:
        return finding.document.part(here, context["start"], context["end"])
    return finding.document.span(here, about_key)


def _wrong_shape(wanted: str, example: str) -> _Describer:
    def describe_shape(finding: _Finding) -> Diagnostic:
        here = finding.document.trim(finding.path)
        is_scalar = isinstance(finding.input, str | int | float)
        return Diagnostic(
            "spec/wrong-type",
            f"{_name(here)} must be {wanted}, not {quoted(finding.input)}",
            finding.document.span(here),
            label=example.format(value=str(finding.input)[:40]) if is_scalar else "",
        )

    return describe_shape


def _other(finding: _Finding) -> Diagnostic:
    message = f"{_name(finding.path)}: {finding.details['msg']}"
    return Diagnostic("spec/bad-value", message, finding.document.span(finding.path, finding.is_key))


_A_MAPPING = _wrong_shape("a mapping", "write keys below it, or {{key: value}}")
_DESCRIBERS: Mapping[str, _Describer] = {
    MISTAKE: _own,
    "missing": _missing,
    "extra_forbidden": _unknown_key,
    "model_type": _A_MAPPING,
    "dict_type": _A_MAPPING,
    "tuple_type": _wrong_shape("a list", "write [{value}]"),
}


def _step(annotation: Any, segment: str | int) -> Any:
    """Return the type one path segment below a type, None where the grammar has nothing there."""
    annotation = _plain(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Section):
        fields = annotation.model_fields.items()
        return next((_plain(field.annotation) for name, field in fields if (field.alias or name) == segment), None)
    if get_origin(annotation) in (dict, tuple):
        arguments = get_args(annotation)
        return _plain(arguments[1] if get_origin(annotation) is dict else arguments[0])
    return None


def _plain(annotation: Any) -> Any:
    """Strip `Annotated` and optionality from a type."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return _plain(next(argument for argument in get_args(annotation) if argument is not type(None)))
    return annotation
