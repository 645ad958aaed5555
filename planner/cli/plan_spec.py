"""The spec that a saved plan was made from, or is held against: given, or found by its digest or its name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

from planner.cli.inputs import catalog_for, read_spec, refuse
from planner.cli.options import flag
from planner.cli.streams import usage_error
from planner.revision.reference import PREFIX, RevisionError, is_reference, parse_reference

if TYPE_CHECKING:
    from planner.pipeline import Prepared
    from planner.plan.schema import Plan
    from planner.source import FilePath
    from planner.spec import LoadedSpec

MOST_FILES = 200
SPEC_FOLDERS = (".", "specs")
ENDINGS = (".yaml", ".yml")

SpecOption = Annotated[
    str | None,
    flag("--spec", "The spec of the plan; default: found by its digest here or in specs/.", metavar="SPEC"),
]


def prepared(plan: Plan, path: str, spec: str | None, folder: Path | None) -> Prepared:
    """Return the spec and the catalog of the plan at `path`. Leaves with what is wrong where they are not its own."""
    loaded = read_spec(spec, None) if spec is not None else spec_of(plan, path)
    if loaded is None:
        usage_error("the spec of this plan is not beside it, here or in specs/, or it was changed; give it with --spec")
    return prepared_with(loaded, plan, path, folder)


def prepared_with(loaded: LoadedSpec, plan: Plan, path: str, folder: Path | None) -> Prepared:
    """Return a spec and its catalog where both are those of the plan at `path`. Raises `DiagnosticError` where not."""
    from planner.pipeline import prepare, spec_digest

    if loaded.spec is None:
        refuse(loaded.diagnostics, loaded)
    if spec_digest(loaded) != plan.digests.spec:
        reason = f"{loaded.path} is not the spec that this plan was made from, or was changed since; solve it again"
        refuse_plan("plan/other-spec", reason, path)
    opened = catalog_for(loaded, folder)
    if opened.digest() != plan.digests.catalog:
        refuse_plan("plan/other-catalog", "the catalog was changed since this plan was made; solve it again", path)
    return prepare(loaded, opened)


def spec_today(plan: Plan, path: str) -> LoadedSpec:
    """Return the spec that the plan at `path` is to be held against: its own, or one that was changed since.

    That is the one with its digest, or else with its name, nearby. Leaves with a usage error where there is none, or several.
    """
    same = spec_of(plan, path)
    if same is not None:
        return same
    stem = Path(path).name.partition(".")[0]
    named = [file for file in _near(Path(path).parent) if file.stem == stem]
    alike = named or [file for file in _near(Path(path).parent) if _fleet_of(file) == plan.fleet]
    if len(alike) > 1:
        usage_error(f"which spec is {path} to be held against? {', '.join(map(str, alike))}; say so with --spec")
    if not alike:
        usage_error(f"no spec for {path} is beside it, here or in specs/: give it with --spec")
    return read_spec(str(alike[0]), None)


def spec_of_plan(plan: Plan, path: str, other: str) -> LoadedSpec | None:
    """Return the spec that the plan at `path` was made from, None where it is not at hand.

    It is the one with its digest: nearby, in the file of the `other` side, or, for a plan of a revision and for a spec that
    was changed since the last commit, at that revision.
    """
    near = None if is_reference(path) else spec_of(plan, path)
    if near is not None:
        return near
    files = _at_revision(path, other)
    return _first_of((_loaded(file) for file in islice(files, MOST_FILES)), plan)


def _at_revision(path: str, other: str) -> Iterator[FilePath]:
    """Yield the files that may be the spec of a plan: the other side's, and those beside the plan and in specs/, at its revision."""
    from planner.revision.path import open_reference

    ref = parse_reference(path).ref if is_reference(path) else "HEAD"
    with suppress(RevisionError):
        named = f"{PREFIX}{ref}:{parse_reference(other).path}" if is_reference(other) else f"{PREFIX}{ref}"
        yield open_reference(named, None if is_reference(other) else other)
    if is_reference(path):
        with suppress(RevisionError):
            plan = open_reference(path, other)
            for folder in (plan.parent, plan.parents[-1] / "specs"):
                yield from sorted((f for f in folder.rglob("*") if f.suffix in ENDINGS and f.is_file()), key=str)


def _loaded(file: FilePath) -> LoadedSpec | None:
    from planner.source import MAX_SOURCE_BYTES, source_of
    from planner.spec import load_spec

    try:
        with file.open("rb") as opened:
            source = source_of(opened.read(MAX_SOURCE_BYTES + 1), str(file), file)
    except OSError:
        return None
    return None if source.text is None else load_spec(source.text, source.path, source.file)


def _first_of(specs: Iterable[LoadedSpec | None], plan: Plan) -> LoadedSpec | None:
    from planner.pipeline import spec_digest

    return next((spec for spec in specs if spec is not None and spec_digest(spec) == plan.digests.spec), None)


def check_fleet(plan: Plan, path: str, what: str) -> None:
    """Raise `DiagnosticError` for a plan without pools: it has nothing to do `what` with."""
    if not plan.pools:
        refuse_plan("plan/no-fleet", f"this plan has no fleet to {what}; `planner show` says why", path)


def refuse_plan(code: str, message: str, path: str) -> NoReturn:
    """Raise `DiagnosticError` about the plan at `path`."""
    from planner.diagnostics import Diagnostic, DiagnosticError, Span

    raise DiagnosticError([Diagnostic(code, message, Span(path, 1, 1, 2))])


def spec_of(plan: Plan, path: str) -> LoadedSpec | None:
    """Return the spec with the digest that a plan names: beside the plan, in the working folder, or in a folder specs/ of either."""
    return _first_of((read_spec(str(file), None) for file in _near(Path(path).parent)), plan)


def _fleet_of(file: Path) -> str | None:
    spec = read_spec(str(file), None).spec
    return None if spec is None else spec.fleet


def _near(home: Path) -> Iterator[Path]:
    folders = [home, *map(Path, SPEC_FOLDERS), home / "specs", home.parent / "specs"]
    files = [f for folder in folders for f in sorted(folder.glob("**/*" if folder.name == "specs" else "*"))]
    known: dict[Path, Path] = {}
    for file in files:
        if file.suffix in ENDINGS and file.is_file():
            known.setdefault(file.resolve(), file)
    yield from list(known.values())[:MOST_FILES]
