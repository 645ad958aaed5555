"""Reading what commands are given: specs, catalogs and plans, from files or standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from planner.cli.exits import ExitCode
from planner.cli.streams import STANDARD, note, usage_error
from planner.diagnostics import STANDARD_INPUT_NAME

if TYPE_CHECKING:
    from planner.catalog import Catalog, UnknownName
    from planner.diagnostics import Diagnostic, DiagnosticError
    from planner.plan.schema import Plan
    from planner.policy import PlacedPolicy
    from planner.spec import LoadedPolicies, LoadedSpec
    from planner.validation.stated import Stated
    from planner.validation.table import Measurements


def files_meant(paths: Sequence[str], endings: tuple[str, ...], noun: str) -> list[str]:
    """Return the files meant: folders by their files with these endings, in sorted order, each once.

    Leaves with a usage error for paths that are not there, and folders without such a file.
    """
    found: list[str] = []
    for path in paths:
        if os.path.isdir(path):
            inside = sorted(str(p) for p in Path(path).rglob("*") if p.name.endswith(endings) and p.is_file())
            if not inside:
                usage_error(f"no {noun} in {path}")
            found.extend(inside)
        elif path == STANDARD or os.path.exists(path):
            found.append(path)
        else:
            usage_error(f"no such file: {path}")
    return list(dict.fromkeys(found))


def read_spec(path: str, name: str | None) -> LoadedSpec:
    """Read a spec with all that is wrong with it. `name` stands for standard input in messages."""
    from planner.source import read_source
    from planner.spec import LoadedSpec, load_spec

    try:
        source = read_source(path, name if path == STANDARD else None)
    except OSError as error:
        usage_error(f"cannot read {path}: {error.strerror or error}")
    if source.text is None:
        return LoadedSpec(source.path, None, source.diagnostics, None)
    return load_spec(source.text, source.path)


def read_policies(paths: Sequence[str], catalog: Catalog, quiet: bool = False) -> tuple[PlacedPolicy, ...]:
    """Read files of policies. Leaves with the exit code of wrong input, and what is wrong with a file."""
    from planner.candidates.references import check_policy_references
    from planner.diagnostics import has_errors
    from planner.policy import placed
    from planner.source import read_source
    from planner.spec import load_policies

    _check_once(paths)
    found: list[PlacedPolicy] = []
    for path in paths:
        try:
            source = read_source(path)
        except OSError as error:
            usage_error(f"--policies: cannot read {path}: {error.strerror or error}")
        if source.text is None:
            refuse(source.diagnostics)
        loaded = load_policies(source.text, source.path)
        diagnostics = (*loaded.diagnostics, *check_policy_references(loaded, catalog))
        if loaded.policies is None or has_errors(diagnostics):
            refuse(diagnostics, loaded)
        if not quiet:
            report(diagnostics, loaded)
        found += placed(loaded.policies, loaded.path)
    return tuple(found)


def catalog_for(loaded: LoadedSpec, folder: Path | None) -> Catalog:
    """Open the catalog for a spec. Raises `DiagnosticError` for what is wrong with it."""
    from planner.candidates.references import open_catalog

    if folder is not None and not (folder / "catalog.yaml").is_file():
        usage_error(f"no catalog at {folder}: it holds no catalog.yaml")
    return open_catalog(loaded, folder)


def open_folder(folder: Path | None) -> Catalog:
    """Open a catalog without a spec: at `folder`, else the nearest one upward, else the shipped one.

    Leaves with the exit code of wrong input when it cannot be opened.
    """
    from planner.catalog import Catalog, find_catalog
    from planner.diagnostics import DiagnosticError

    try:
        return Catalog.open(folder or find_catalog(Path.cwd()))
    except DiagnosticError as error:
        refuse_catalog(error)


def refuse_catalog(error: UnknownName | DiagnosticError) -> NoReturn:
    """Print what a catalog cannot answer, one line each, and leave with the exit code of wrong input."""
    from planner.diagnostics import DiagnosticError
    from planner.report.figures import visible

    if isinstance(error, DiagnosticError):
        lines = [one_line(d) for d in error.diagnostics]
    else:
        lines = [f"error[{_name_code(error)}]: {error}{listing_of(error.kind)}"]
    note("\n".join(visible(line) for line in lines))
    raise typer.Exit(ExitCode.WRONG_INPUT)


def _name_code(unknown: UnknownName) -> str:
    if unknown.reason:
        return "catalog/not-modelled"
    if unknown.ambiguous:
        return {"gpu": "catalog/ambiguous-gpu", "model": "catalog/ambiguous-model"}.get(
            unknown.kind, "catalog/ambiguous-name"
        )
    kind = unknown.kind.replace(" ", "-")
    return f"catalog/unknown-{kind}"


def listing_of(kind: str) -> str:
    """Return how the names of a kind are listed, in brackets, where a command does."""
    listed = {"gpu": "gpus", "model": "models", "provider": "offers"}.get(kind)
    return f" (list them: planner catalog list {listed})" if listed else ""


def one_line(diagnostic: Diagnostic) -> str:
    """Return a diagnostic as one line with its place."""
    span = diagnostic.span
    where = f"{span.path}:{span.line}:{span.column}: " if span else ""
    return f"{where}{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}"


def read_measurements(paths: Sequence[str], stated: Stated) -> Measurements:
    """Read tables and result files of benchmark tools as one table.

    `stated` fills what they leave blank. Leaves with a usage error, or with diagnostics when one cannot be used.
    """
    from planner.diagnostics import DiagnosticError
    from planner.validation.table import join, read_measurement_file

    _check_once(paths)
    try:
        return join([read_measurement_file(*_bytes_of(path), stated) for path in paths])
    except DiagnosticError as error:
        refuse(error.diagnostics)


def _check_once(paths: Sequence[str]) -> None:
    """Leave with a usage error when a file is given twice: its rows would count twice, and standard input is read once."""
    known: set[Path | str] = set()
    for path in paths:
        meant = path if path == STANDARD else Path(path).resolve()
        if meant in known:
            usage_error(f"{'standard input (-)' if path == STANDARD else path} is given twice")
        known.add(meant)


def _bytes_of(path: str) -> tuple[bytes, str]:
    from planner.validation.table import LARGEST_BYTES

    try:
        if path == STANDARD:
            return sys.stdin.buffer.read(LARGEST_BYTES + 1), STANDARD_INPUT_NAME
        with Path(path).open("rb") as file:
            return file.read(LARGEST_BYTES + 1), path
    except OSError as error:
        usage_error(f"cannot read {path}: {error.strerror or error}")


def read_plan(path: str) -> Plan:
    """Read a saved plan. Raises `DiagnosticError` for what is wrong with it."""
    from planner.plan.io import LARGEST_FILE_BYTES, loads

    try:
        if path == STANDARD:
            return loads(sys.stdin.buffer.read(LARGEST_FILE_BYTES + 1), STANDARD_INPUT_NAME)
        with Path(path).open("rb") as file:
            return loads(file.read(LARGEST_FILE_BYTES + 1), path)
    except OSError as error:
        usage_error(f"cannot read {path}: {error.strerror or error}")


def report(diagnostics: Iterable[Diagnostic], loaded: LoadedSpec | LoadedPolicies | None = None) -> None:
    """Print diagnostics to standard error, with the lines of the spec that they are about."""
    from planner.diagnostics import sort_key
    from planner.report.diagnostics.full import render_full

    lines = loaded.document.lines if loaded is not None and loaded.document is not None else ()
    sources = {loaded.path: lines} if loaded is not None else {}
    text = render_full(sorted(diagnostics, key=sort_key), sources)
    if text:
        note(text.rstrip("\n"))


def refuse(diagnostics: Iterable[Diagnostic], loaded: LoadedSpec | LoadedPolicies | None = None) -> NoReturn:
    """Print diagnostics and leave with the exit code of wrong input."""
    report(diagnostics, loaded)
    raise typer.Exit(ExitCode.WRONG_INPUT)
