"""`planner check`: validate specs without a solver: YAML, keys, units, references."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.exits import ExitCode
from planner.cli.inputs import catalog_folder, located, read_source
from planner.cli.options import CatalogOption, StdinNameOption, flag
from planner.cli.streams import STANDARD, answer, note, usage_error

if TYPE_CHECKING:
    from planner.diagnostics import Diagnostic
    from planner.source import FilePath

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
    specs: Annotated[list[str], typer.Argument(metavar="SPEC", help="Files, folders, git:REF:PATH, or - for stdin.")],
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
    folder = catalog_folder(catalog)
    found: list[Diagnostic] = []
    sources: dict[str, tuple[str, ...]] = {}
    for path in paths:
        diagnostics, name, lines = check_file(path, folder, stdin_filename)
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
    path: str, catalog: FilePath | None, stdin_filename: str | None = None
) -> tuple[list[Diagnostic], str, tuple[str, ...]]:
    """Check one file. Returns what was found, the name of the file in messages, and its lines."""
    from planner.candidates.references import check_references, open_catalog
    from planner.diagnostics import DiagnosticError, sort_key
    from planner.spec import load_spec

    source = read_source(path, stdin_filename)
    if source.text is None:
        return list(source.diagnostics), source.path, ()
    loaded = load_spec(source.text, source.path, source.file)
    found = list(loaded.diagnostics)
    if loaded.document is None:
        return found, source.path, source.lines
    try:
        found.extend(check_references(loaded, open_catalog(loaded, catalog)))
    except DiagnosticError as error:
        found.extend(error.diagnostics)
    return sorted(found, key=sort_key), source.path, source.lines


def _expand(specs: list[str]) -> list[str]:
    """Return the files meant: folders by their YAML files, in sorted order, each once."""
    paths: list[str] = []
    for spec in specs:
        try:
            paths.extend(_meant(spec))
        except OSError as error:
            usage_error(f"cannot read {spec}: {error.strerror or error}")
    return list(dict.fromkeys(paths))


def _meant(spec: str) -> list[str]:
    file = located(spec)
    if file.is_dir():
        inside = sorted(str(p) for p in file.rglob("*") if p.suffix in _ENDINGS and p.is_file())
        return inside or usage_error(f"no YAML file in {spec}")
    if spec == STANDARD or file.exists():
        return [spec]
    return usage_error(f"no such file: {spec}")
