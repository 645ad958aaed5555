"""`planner check`: validate specs without a solver: YAML, keys, units, references."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.exits import ExitCode
from planner.cli.options import CatalogOption, StdinNameOption, flag
from planner.cli.streams import STANDARD, answer, note, usage_error

if TYPE_CHECKING:
    from planner.diagnostics import Diagnostic

_ENDINGS = (".yaml", ".yml")


class CheckFormat(StrEnum):
    """How findings are printed."""

    FULL = "full"
    CONCISE = "concise"
    JSON = "json"


class FailOn(StrEnum):
    """What makes the command fail."""

    ERROR = "error"
    WARNING = "warning"


def check(
    specs: Annotated[list[str], typer.Argument(metavar="SPEC", help="Files, folders, or - for standard input.")],
    format: Annotated[CheckFormat, typer.Option(help="How to print what is found.")] = CheckFormat.FULL,
    catalog: CatalogOption = None,
    fail_on: Annotated[FailOn, flag("--fail-on", "What makes the command fail.")] = FailOn.ERROR,
    stdin_filename: StdinNameOption = None,
) -> None:
    """Validate specs: YAML, keys, units, references to the catalog. Needs no solver.

    Example: planner check specs/prod.yaml
    """
    from planner.diagnostics import has_errors
    from planner.report.diagnostics import render_concise, render_full, render_json, summary

    paths = _expand(specs)
    if catalog is not None and not (catalog / "catalog.yaml").is_file():
        usage_error(f"no catalog at {catalog}: it holds no catalog.yaml")
    found: list[Diagnostic] = []
    sources: dict[str, tuple[str, ...]] = {}
    for path in paths:
        diagnostics, name, lines = check_file(path, catalog, stdin_filename)
        found.extend(diagnostics)
        sources[name] = lines
    if format is CheckFormat.JSON:
        answer(render_json(found, list(sources)))
    else:
        text = render_full(found, sources) if format is CheckFormat.FULL else render_concise(found)
        answer(text)
    note(summary(found, len(paths)))
    if has_errors(found) or (found and fail_on is FailOn.WARNING):
        raise typer.Exit(ExitCode.WRONG_INPUT)


def check_file(
    path: str, catalog: Path | None, stdin_filename: str | None = None
) -> tuple[list[Diagnostic], str, tuple[str, ...]]:
    """Check one file. Returns what was found, the name of the file in messages, and its lines."""
    from planner.candidates.references import check_references, open_catalog
    from planner.diagnostics import DiagnosticError, sort_key
    from planner.source import read_source
    from planner.spec import is_policy_file, load_spec

    try:
        source = read_source(path, stdin_filename if path == STANDARD else None)
    except OSError as error:
        usage_error(f"cannot read {path}: {error.strerror or error}")
    if source.text is None:
        return list(source.diagnostics), source.path, ()
    loaded = load_spec(source.text, source.path)
    if loaded.document is not None and is_policy_file(loaded.document):
        return _check_policies(source.text, source.path, catalog), source.path, source.lines
    found = list(loaded.diagnostics)
    if loaded.document is None:
        return found, source.path, source.lines
    try:
        found.extend(check_references(loaded, open_catalog(loaded, catalog)))
    except DiagnosticError as error:
        found.extend(error.diagnostics)
    return sorted(found, key=sort_key), source.path, source.lines


def _check_policies(text: str, path: str, folder: Path | None) -> list[Diagnostic]:
    """Check a file of policies, which has no catalog of its own: the nearest one upward, else the shipped one."""
    from planner.candidates.references import check_policy_references
    from planner.catalog import Catalog, find_catalog
    from planner.diagnostics import DiagnosticError, sort_key
    from planner.spec import load_policies

    loaded = load_policies(text, path)
    try:
        catalog = Catalog.open(folder or find_catalog(Path(path).parent))
        named = check_policy_references(loaded, catalog)
    except DiagnosticError as error:
        named = error.diagnostics
    return sorted([*loaded.diagnostics, *named], key=sort_key)


def _expand(specs: list[str]) -> list[str]:
    """Return the files meant: folders by their YAML files, in sorted order, each once."""
    paths: list[str] = []
    for spec in specs:
        if os.path.isdir(spec):
            inside = sorted(str(p) for p in Path(spec).rglob("*") if p.suffix in _ENDINGS and p.is_file())
            if not inside:
                usage_error(f"no YAML file in {spec}")
            paths.extend(inside)
        elif spec == STANDARD or os.path.exists(spec):
            paths.append(spec)
        else:
            usage_error(f"no such file: {spec}")
    return list(dict.fromkeys(paths))
