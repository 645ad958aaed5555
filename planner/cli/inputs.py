"""Reading what commands are given: specs, catalogs and plans, from files, revisions of a repository or standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from planner.cli.exits import ExitCode
from planner.cli.streams import STANDARD, note, note_lines, usage_error
from planner.diagnostics import STANDARD_INPUT_NAME
from planner.revision.reference import RevisionError, is_reference, parse_reference

if TYPE_CHECKING:
    from planner.catalog import Catalog, UnknownName
    from planner.diagnostics import Diagnostic, DiagnosticError
    from planner.plan.schema import Plan
    from planner.policy import PlacedPolicy
    from planner.source import FilePath, Source
    from planner.spec import LoadedPolicies, LoadedSpec
    from planner.spec.scenario_file import LoadedScenarios
    from planner.validation.stated import Stated
    from planner.validation.table import Measurements

PLAN_STARTS = (b"{", b"<")
"""How plans begin, in JSON or inside a page; no spec does."""


def files_meant(paths: Sequence[str], endings: tuple[str, ...], noun: str) -> list[str | FilePath]:
    """Return the files meant: folders by their files with these endings, in sorted order, each once.

    Those at a revision are of one commit, whatever becomes of a branch meanwhile; others have the names that were given. Leaves with a usage error for paths that are not there, and folders without such a file.
    """
    found: list[str | FilePath] = []
    for path in paths:
        try:
            found.extend(_files_at(path, endings) or usage_error(f"no {noun} in {path}"))
        except OSError as error:
            usage_error(f"cannot read {path}: {error.strerror or error}")
    return list(dict.fromkeys(found))


def _files_at(path: str, endings: tuple[str, ...]) -> list[str | FilePath]:
    place = located(path)
    if place.is_dir():
        found = sorted((p for p in place.rglob("*") if p.name.endswith(endings) and p.is_file()), key=str)
        if is_reference(path):
            from planner.revision.path import read_together

            read_together(found)
    elif path == STANDARD or place.exists():
        found = [place]
    else:
        usage_error(f"no such file: {path}")
    return [p if is_reference(path) else path if p is place else str(p) for p in found]


def read_spec(path: str, name: str | None, beside: str | None = None) -> LoadedSpec:
    """Read a spec with all that is wrong with it. `name` stands for standard input in messages; `beside` as for `located`."""
    from planner.spec import LoadedSpec, load_spec

    source = read_source(path, name, beside)
    if source.text is None:
        return LoadedSpec(source.path, None, source.diagnostics, None, source.file)
    return load_spec(source.text, source.path, source.file)


def read_source(path: str | FilePath, name: str | None, beside: str | None = None) -> Source:
    """Read the text of a spec, whatever is in it. `name` stands for standard input in messages; `beside` as for `located`."""
    from planner.source import MAX_SOURCE_BYTES, source_of

    return source_of(*_given(path, MAX_SOURCE_BYTES, name, beside))


def located(path: str, beside: str | None = None) -> FilePath:
    """Return the file or folder that an argument names: on disk, or in a repository for `git:REF:PATH`.

    `beside` is the argument that it is compared with: it says which repository is meant, and the path where `git:REF` has
    none. Leaves with a usage error when there is nothing at a revision; what is on disk is not looked for.
    """
    if not is_reference(path):
        return Path(path)
    from planner.revision.path import open_reference

    try:
        return open_reference(path, None if beside == STANDARD else beside)
    except RevisionError as error:
        usage_error(f"{path}: {error}")


def _given(
    path: str | FilePath, largest: int, name: str | None = None, beside: str | None = None
) -> tuple[bytes, str, FilePath | None]:
    """Return the bytes of a file, one more than `largest` where it holds more, its name in messages, and where it lies.

    Leaves with a usage error when it cannot be read.
    """
    if not isinstance(path, str):
        file, shown = path, str(path)
    elif path == STANDARD:
        file, shown = None, name or STANDARD_INPUT_NAME
    else:
        file = located(path, beside)
        shown = str(file) if is_reference(path) else path
    try:
        if file is None:
            return sys.stdin.buffer.read(largest + 1), shown, None
        with file.open("rb") as opened:
            return opened.read(largest + 1), shown, file
    except OSError as error:
        usage_error(f"cannot read {path}: {error.strerror or error}")


def read_policies(paths: Sequence[str], catalog: Catalog, quiet: bool = False) -> tuple[PlacedPolicy, ...]:
    """Read files of policies. Leaves with the exit code of wrong input, and what is wrong with a file."""
    from planner.candidates.references import check_policy_references
    from planner.diagnostics import has_errors
    from planner.policy import placed
    from planner.spec import load_policies

    _check_once(paths)
    found: list[PlacedPolicy] = []
    for path in paths:
        source = read_source(path, None)
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


def policies_at(old: str, paths: Sequence[str], beside: str | None = None) -> tuple[PlacedPolicy, ...]:
    """Return the policies of files as they were at the revision that `old` names, for a change not to loosen its own.

    None where `old` is no revision, and of files that its repository did not have; `beside` as for `located`. Files that
    were no policies then are told and left out. Leaves with a usage error where one was there and cannot be read.
    """
    if not is_reference(old):
        return ()
    from planner.policy import placed
    from planner.revision.path import earlier_file
    from planner.source import MAX_SOURCE_BYTES, source_of
    from planner.spec import load_policies

    found: list[PlacedPolicy] = []
    for path in (path for path in paths if path != STANDARD):
        try:
            file = earlier_file(old, path, None if beside == STANDARD else beside)
            if file is None:
                continue
            with file.open("rb") as opened:
                source = source_of(opened.read(MAX_SOURCE_BYTES + 1), str(file))
        except RevisionError as error:
            usage_error(f"{old}: {error}")
        except OSError as error:
            usage_error(f"cannot read {file}: {error.strerror or error}")
        loaded = load_policies(source.text or "", source.path)
        if loaded.policies is None:
            note(f"planner: {source.path} is no file of policies, so that only {path} as it is now counts")
        else:
            found += placed(loaded.policies, loaded.path)
    return tuple(found)


def catalog_for(loaded: LoadedSpec, folder: Path | None) -> Catalog:
    """Open the catalog for a spec. Raises `DiagnosticError` for what is wrong with it."""
    from planner.candidates.references import open_catalog

    return open_catalog(loaded, catalog_folder(folder))


def catalog_folder(folder: Path | None) -> FilePath | None:
    """Return the folder that `--catalog` names, None without it. Leaves with a usage error when it holds no catalog."""
    if folder is None:
        return None
    found = located(str(folder))
    if not (found / "catalog.yaml").is_file():
        usage_error(f"no catalog at {folder}: it holds no catalog.yaml")
    return found


def open_folder(folder: Path | None) -> Catalog:
    """Open a catalog without a spec: at `folder`, else the nearest one upward, else the shipped one.

    Leaves with the exit code of wrong input when it cannot be opened.
    """
    from planner.catalog import Catalog, find_catalog
    from planner.diagnostics import DiagnosticError

    try:
        return Catalog.open(located(str(folder)) if folder is not None else find_catalog(Path.cwd()))
    except DiagnosticError as error:
        refuse_catalog(error)


def refuse_catalog(error: UnknownName | DiagnosticError) -> NoReturn:
    """Print what a catalog cannot answer, one line each, and leave with the exit code of wrong input."""
    from planner.diagnostics import DiagnosticError

    if isinstance(error, DiagnosticError):
        lines = [one_line(d) for d in error.diagnostics]
    else:
        lines = [f"error[{_name_code(error)}]: {error}{listing_of(error.kind)}"]
    for line in lines:
        note(line)
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
    from planner.validation.table import LARGEST_BYTES, join, read_measurement_file

    _check_once(paths)
    try:
        return join([read_measurement_file(*_given(path, LARGEST_BYTES)[:2], stated) for path in paths])
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


def read_plan(path: str | FilePath, beside: str | None = None) -> Plan:
    """Read a saved plan. Raises `DiagnosticError` for what is wrong with it; `beside` as for `located`."""
    from planner.plan.io import LARGEST_FILE_BYTES, loads

    data, shown, _ = _given(path, LARGEST_FILE_BYTES, beside=beside)
    return loads(data, shown)


def read_either(path: str, beside: str | None = None) -> Plan | LoadedSpec:
    """Read a saved plan or a spec, told apart by how they begin. Raises `DiagnosticError` for what is wrong with a plan."""
    from planner.plan.io import LARGEST_FILE_BYTES, loads
    from planner.source import source_of
    from planner.spec import LoadedSpec, load_spec

    data, shown, file = _given(path, LARGEST_FILE_BYTES, beside=None if names_a_file(path) else beside)
    if data.lstrip()[:1] in PLAN_STARTS:
        return loads(data, shown)
    source = source_of(data, shown, file)
    if source.text is None:
        return LoadedSpec(source.path, None, source.diagnostics, None, source.file)
    return load_spec(source.text, source.path, source.file)


def names_a_file(path: str) -> bool:
    """Tell whether an argument is a whole name: a file on disk, or `git:REF:PATH`, which is of the working folder's repository."""
    try:
        return not is_reference(path) or parse_reference(path).path is not None
    except RevisionError:
        return True


def report(
    diagnostics: Iterable[Diagnostic], loaded: LoadedSpec | LoadedPolicies | LoadedScenarios | None = None
) -> None:
    """Print diagnostics to standard error, with the lines of the spec that they are about."""
    from planner.diagnostics import sort_key
    from planner.report.diagnostics.full import render_full

    lines = loaded.document.lines if loaded is not None and loaded.document is not None else ()
    sources = {loaded.path: lines} if loaded is not None else {}
    text = render_full(sorted(diagnostics, key=sort_key), sources)
    if text:
        note_lines(text.rstrip("\n"))


def refuse(
    diagnostics: Iterable[Diagnostic], loaded: LoadedSpec | LoadedPolicies | LoadedScenarios | None = None
) -> NoReturn:
    """Print diagnostics and leave with the exit code of wrong input."""
    report(diagnostics, loaded)
    raise typer.Exit(ExitCode.WRONG_INPUT)
