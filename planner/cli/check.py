"""`planner check`: validate specs without a solver: YAML, keys, units, references."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli.exits import ExitCode
from planner.cli.inputs import catalog_folder, files_meant, read_source
from planner.cli.options import CatalogOption, StdinNameOption, flag, is_file
from planner.cli.streams import answer, check_writable, note, save
from planner.diagnostics import DiagnosticError, has_errors, sort_key
from planner.report.diagnostics import formats, render
from planner.report.findings import CheckedFile, all_diagnostics, summary

if TYPE_CHECKING:
    from planner.candidates.references import OpenCatalogs
    from planner.diagnostics import Diagnostic
    from planner.source import FilePath
    from planner.spec import LoadedSpec

_ENDINGS = (".yaml", ".yml")

CheckFormat = StrEnum("CheckFormat", formats())  # type: ignore[misc]  # one member per module of the folder


class FailOn(StrEnum):
    """What makes the command fail."""

    ERROR = "error"
    WARNING = "warning"


def check(
    specs: Annotated[list[str], typer.Argument(metavar="SPEC", help="Files, folders, git:REF:PATH, or - for stdin.")],
    format: Annotated[CheckFormat, typer.Option(help="How to print what is found.")] = CheckFormat("full"),
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Save what is found instead of printing it.")
    ] = None,
    catalog: CatalogOption = None,
    fail_on: Annotated[FailOn, flag("--fail-on", "What makes the command fail.")] = FailOn.ERROR,
    stdin_filename: StdinNameOption = None,
) -> None:
    """Validate specs: YAML, keys, units, references to the catalog. Needs no solver.

    Formats for pipelines: github for annotations, gitlab for Code Quality, sarif for code scanning, junit for test
    reports, json for programs.

    Example: planner check specs/prod.yaml
    """
    from planner.candidates.references import OpenCatalogs

    paths = files_meant(specs, _ENDINGS, "YAML file")
    folder = catalog_folder(catalog)
    target = out if out is not None and is_file(str(out)) else None
    if target is not None:
        check_writable(target, map(str, paths))
    opener = OpenCatalogs()
    files = [check_file(path, folder, opener, stdin_filename) for path in paths]
    text = render(format, files)
    if target is None:
        answer(text)
    else:
        save(target, text)
        note(f"wrote {target}")
    note(summary(files))
    found = all_diagnostics(files)
    if has_errors(found) or (found and fail_on is FailOn.WARNING):
        raise typer.Exit(ExitCode.WRONG_INPUT)


def check_file(
    path: str | FilePath, catalog: FilePath | None, opener: OpenCatalogs, stdin_filename: str | None = None
) -> CheckedFile:
    """Check one file. `opener` keeps the catalogs of other files open."""
    from planner.spec import is_policy_file, load_spec
    from planner.spec.scenario_file import is_scenario_file, load_scenarios

    source = read_source(path, stdin_filename)
    if source.text is None:
        return CheckedFile(source.path, (), source.diagnostics)
    loaded = load_spec(source.text, source.path, source.file)
    if loaded.document is not None and is_policy_file(loaded.document):
        found = _policies(source.text, loaded, catalog, opener)
    elif loaded.document is not None and is_scenario_file(loaded.document):
        found = list(load_scenarios(source.text, source.path).diagnostics)
    else:
        found = _spec(loaded, catalog, opener)
    return CheckedFile(source.path, source.lines, tuple(sorted(found, key=sort_key)))


def _spec(loaded: LoadedSpec, folder: FilePath | None, opener: OpenCatalogs) -> list[Diagnostic]:
    from planner.candidates.references import check_references, open_catalog

    if loaded.document is None:
        return list(loaded.diagnostics)
    try:
        named = check_references(loaded, open_catalog(loaded, folder, opener))
    except DiagnosticError as error:
        named = error.diagnostics
    return [*loaded.diagnostics, *named]


def _policies(text: str, file: LoadedSpec, folder: FilePath | None, opener: OpenCatalogs) -> list[Diagnostic]:
    """Check a file of policies, which has no catalog of its own: the nearest one upward, else the shipped one."""
    from planner.candidates.references import check_policy_references
    from planner.catalog import find_catalog
    from planner.spec import load_policies

    loaded = load_policies(text, file.path)
    try:
        named = check_policy_references(loaded, opener(folder or find_catalog(file.home)))
    except DiagnosticError as error:
        named = error.diagnostics
    return [*loaded.diagnostics, *named]
