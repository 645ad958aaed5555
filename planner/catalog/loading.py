"""Catalog files: which there are, and how one becomes a record. A catalog may be anybody's, so nothing is trusted."""

from __future__ import annotations

import math
from functools import lru_cache, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from planner.diagnostics import Diagnostic, DiagnosticError, has_errors
from planner.source import FilePath, YamlPath, parse
from planner.source.edit import with_value

if TYPE_CHECKING:
    from planner.source import Document

SUFFIX = ".yaml"
OTHER_SUFFIXES = (".yml", ".yaml")
"""Endings of YAML files in any case; only `SUFFIX` is read."""
MAX_FILE_BYTES = 5_000_000
_DOCUMENTS_KEPT = 512
"""Files whose trees are kept: more than a catalog has, so that none is parsed again to say where something stands."""

R = TypeVar("R", bound=BaseModel)
FileValues = tuple[tuple[YamlPath, Any], ...]
"""Paths in a file with the plain values that stand there instead, None to leave a key out."""


def file_names(folder: FilePath, depth: int = 1) -> dict[str, FilePath]:
    """Return `name -> path` for the YAML files of `folder`, sorted by name.

    With `depth` 2 the files of its sub-folders, named `folder/file`. A file is only ever found by this listing, never
    by joining a name to a path, so that no name leads outside of the catalog.
    """
    found: dict[str, FilePath] = {}
    for entry in _entries(folder):
        if depth > 1 and entry.is_dir() and not entry.is_symlink():
            found |= {f"{entry.name}/{n}": p for n, p in file_names(entry, depth - 1).items()}
        elif depth == 1 and entry.name.endswith(SUFFIX) and entry.is_file():
            found[entry.name.removesuffix(SUFFIX)] = entry
    return dict(sorted(found.items()))


def _entries(folder: FilePath) -> list[FilePath]:
    if not folder.is_dir():
        return []
    try:
        return sorted((e for e in folder.iterdir() if not e.name.startswith(".")), key=lambda e: e.name)
    except OSError as error:
        raise _unreadable(folder, error) from None


def misnamed(folder: FilePath, depth: int = 1) -> list[Diagnostic]:
    """Return an error for each file of `folder`, and of its sub-folders with `depth` 2, that is YAML by another ending.

    Such files are not listed, and who wrote one expects it to count.
    """
    found: list[Diagnostic] = []
    for entry in _entries(folder):
        if depth > 1 and entry.is_dir() and not entry.is_symlink():
            found += misnamed(entry, depth - 1)
        elif entry.name.casefold().endswith(OTHER_SUFFIXES) and not entry.name.endswith(SUFFIX) and entry.is_file():
            message = f"{shown_path(entry)} is not read: files of a catalog end in {SUFFIX}; rename it"
            found.append(Diagnostic("catalog/misnamed", message))
    return found


def read_document(path: FilePath) -> Document:
    """Read one YAML file into a located tree. Raises `DiagnosticError` naming the file."""
    document, diagnostics = _parsed(_read_text(path), shown_path(path))
    if document is None or has_errors(diagnostics):
        raise DiagnosticError(diagnostics)
    return document


@lru_cache(maxsize=_DOCUMENTS_KEPT)
def _parsed(text: str, path: str) -> tuple[Document | None, tuple[Diagnostic, ...]]:
    document, diagnostics = parse(text, path)
    return document, tuple(diagnostics)


def shown_path(path: FilePath) -> str:
    """Return a path as people type it: relative when it lies below the current folder."""
    here = Path.cwd()
    return str(path.relative_to(here)) if isinstance(path, Path) and path.is_relative_to(here) else str(path)


def read_bytes(path: FilePath) -> bytes:
    """Read one file of at most `MAX_FILE_BYTES`. Raises `DiagnosticError` naming the file."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, error) from None
    if len(content) > MAX_FILE_BYTES:
        raise _wrong(f"{shown_path(path)} is larger than {MAX_FILE_BYTES // 1_000_000} MB")
    return content


def _read_text(path: FilePath) -> str:
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError:
        raise _wrong(f"{shown_path(path)} is not UTF-8 text") from None


def _unreadable(path: FilePath, error: OSError) -> DiagnosticError:
    reason = error.strerror or type(error).__name__
    return _wrong(f"cannot read {shown_path(path)}: {reason[:1].lower()}{reason[1:]}")


def _wrong(message: str) -> DiagnosticError:
    return DiagnosticError([Diagnostic("catalog/unreadable", message)])


def read_record(path: FilePath, record: type[R], values: FileValues = ()) -> R:
    """Read one YAML file, with other values at some places, into a record.

    Raises `DiagnosticError` with every mistake of the file, located.
    """
    document = read_document(path)
    try:
        return record.model_validate(changed_data(document.data, values))
    except ValidationError as error:
        raise DiagnosticError(_located(document, e) for e in error.errors(include_url=False)) from None


def changed_data(data: Any, values: FileValues) -> Any:
    """Return the data of a file with other values at some places."""
    return reduce(lambda node, change: with_value(node, *change), values, data)


def _located(document: Document, error: ErrorDetails) -> Diagnostic:
    path = tuple(error["loc"])
    key = ".".join(str(p) for p in path) or "the file"
    span = document.span(path, key=error["type"] == "extra_forbidden")
    if error["type"] == "extra_forbidden":
        return Diagnostic("catalog/unknown-key", f"unknown key `{key}`", span)
    if error["type"] == "missing":
        return Diagnostic("catalog/missing-key", f"missing key `{key}`", span)
    value = error["input"]
    if isinstance(value, float) and not math.isfinite(value):
        return Diagnostic("catalog/invalid-value", f"`{key}`: must be a finite number, got {value}", span)
    message = error["msg"][:1].lower() + error["msg"][1:]
    return Diagnostic("catalog/invalid-value", f"`{key}`: {message}", span)
